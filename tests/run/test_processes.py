"""Child processes are kept busy, and no job pays for it: none is held up, lost, or run twice.

On real children, without a database: each `run` is one attempt, and each call of the handler
signs the visitors' book.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest

from howdah.handler import Handler
from howdah.job import Claim
from howdah.run.process import child_process, protocol, supervisor
from howdah.run.process import pool as process_pool
from howdah.run.process.pool import ProcessPool
from howdah.run.process.task import ChildDied
from tests.run import process_jobs
from tests.support.waiting import DEADLINE, eventually

Visitor = asyncio.Task[dict[str, int]]


class Gate:
    """A file that handlers pass when it is open."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._file = path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def open(self) -> None:
        self._file.close()


class House:
    """Processes, and the book of who was there."""

    def __init__(self, processes: ProcessPool, folder: Path) -> None:
        self.processes = processes
        self.book = folder / "book"
        self.book.touch()
        self._folder = folder
        self._gates: list[Gate] = []
        self.reports: dict[int, list[object]] = {}

    def gate(self) -> Gate:
        gate = Gate(self._folder / f"gate{len(self._gates)}")
        self._gates.append(gate)
        return gate

    def open_gates(self) -> None:
        for gate in self._gates:
            gate.open()

    def visit(
        self, n: int, gate: Gate | None = None, *, timeout: float | None = None, **more: Any
    ) -> Visitor:
        data = {"book": str(self.book), "n": n, "gate": gate and gate.path, **more}
        return asyncio.create_task(self._visit(n, data, timeout))

    async def _visit(self, n: int, data: object, timeout: float | None) -> dict[str, int]:
        reports = self.reports.setdefault(n, [])
        returned = await self.run(process_jobs.visit.handler, data, reports, timeout)
        assert returned.result is not None
        return json.loads(returned.result)

    async def run(
        self, handler: Handler, data: object, reports: list[object], timeout: float | None = None
    ) -> protocol.Returned:
        now = time.time()
        claim = Claim(uuid4(), handler.job_type, 100, json.dumps(data), 1, 1, now, now, now)
        ended = await self.processes.run(handler, claim, reports.append, timeout)
        assert isinstance(ended, protocol.Returned), ended
        return ended

    def entries(self) -> list[tuple[int, int]]:
        """Who was there, and in which process."""
        lines = self.book.read_text().splitlines()
        return [(int(n), int(pid)) for n, pid in map(str.split, lines)]

    def visits(self, n: int) -> int:
        return sum(visitor == n for visitor, _ in self.entries())

    async def arrived(self, n: int) -> int:
        """Wait until this visitor has signed; returns the process."""
        await eventually(lambda: self.visits(n) == 1)
        return dict(self.entries())[n]


@asynccontextmanager
async def house(folder: Path, size: int = 1) -> AsyncGenerator[House]:
    """As many children as there may be, all used to short visits, so that they get some ahead."""
    pool = ProcessPool(size)
    opened = House(pool, folder)
    try:
        first = opened.gate()
        together = [opened.visit(-1 - n, first) for n in range(size)]
        await eventually(lambda: len(opened.entries()) == size)
        first.open()
        await asyncio.gather(*together)
        while any(m._pace.limit < 10 for m in pool._minders):  # pyright: ignore[reportPrivateUsage]
            await asyncio.gather(*(opened.visit(-9) for _ in range(size)))
        opened.book.write_text("")
        yield opened
    finally:
        await pool.close()
        opened.open_gates()


def unseen(condition: Callable[[], bool]) -> None:
    """Wait for something of which the worker hears nothing, because its loop stands still."""
    until = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.fixture
def no_taking_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what was given ahead stay there, however long the one at work takes."""
    monkeypatch.setattr(supervisor, "LONG", 3600.0)


@pytest.mark.parametrize("hold_on", [False, True], ids=["sleeping", "holding the interpreter"])
async def test_a_job_behind_a_long_one_goes_to_a_child_that_is_free(
    tmp_path: Path, hold_on: bool
) -> None:
    async with house(tmp_path, size=2) as home, asyncio.timeout(DEADLINE):
        one, other = home.gate(), home.gate()
        long, longish = home.visit(1, one, hold_on=hold_on), home.visit(2, other, hold_on=hold_on)
        await home.arrived(1)
        pid = await home.arrived(2)
        behind = [home.visit(3), home.visit(4)]  # one behind each
        other.open()
        assert {visitor["pid"] for visitor in await asyncio.gather(*behind)} == {pid}
        assert (await longish)["pid"] == pid
        assert not long.done()
        one.open()
        await long
    assert Counter(n for n, _ in home.entries()) == {1: 1, 2: 1, 3: 1, 4: 1}


@pytest.mark.usefixtures("no_taking_back")
async def test_a_timeout_counts_the_work_and_not_the_wait(tmp_path: Path) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        gate = home.gate()
        before, behind = home.visit(1, gate), home.visit(2, timeout=0.5)
        pid = await home.arrived(1)
        await asyncio.sleep(0.8)  # which is the wait, and longer than the timeout
        gate.open()
        assert [(await visitor)["pid"] for visitor in (before, behind)] == [pid, pid]


@pytest.mark.usefixtures("no_taking_back")
async def test_who_is_behind_a_job_that_times_out_does_not_notice(tmp_path: Path) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        slow = home.visit(1, home.gate(), timeout=0.5)
        behind = [home.visit(2), home.visit(3, timeout=0.5)]
        pid = await home.arrived(1)
        with pytest.raises(TimeoutError):
            await slow
        assert not psutil.pid_exists(pid)
        assert [visitor["n"] for visitor in await asyncio.gather(*behind)] == [2, 3]
        assert [n for n, _ in home.entries()] == [1, 2, 3]


@pytest.mark.usefixtures("no_taking_back")
async def test_who_is_behind_a_job_that_is_cancelled_keeps_their_turn(tmp_path: Path) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        unwanted = home.visit(1, home.gate())
        behind = [home.visit(n) for n in range(2, 40)]  # more than are given ahead
        pid = await home.arrived(1)
        unwanted.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unwanted
        assert not psutil.pid_exists(pid), "once it is said to be cancelled, it works no more"
        await asyncio.gather(*behind)
        assert [n for n, _ in home.entries()] == list(range(1, 40))


@pytest.mark.usefixtures("no_taking_back")
async def test_who_is_behind_a_job_that_sends_nonsense_does_not_notice(tmp_path: Path) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        gate = home.gate()
        babbling, behind = home.visit(1, gate, then="babble"), home.visit(2)
        pid = await home.arrived(1)
        gate.open()
        with pytest.raises(ChildDied, match="sent what is no message"):
            await babbling
        assert (await behind)["pid"] != pid
        assert [n for n, _ in home.entries()] == [1, 2]


@pytest.mark.usefixtures("no_taking_back")
async def test_a_job_that_was_taken_and_not_begun_goes_to_another_child(tmp_path: Path) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        gate = home.gate()
        visitors = [home.visit(1, gate, then="rob"), home.visit(2), home.visit(3)]
        await home.arrived(1)
        gate.open()
        robber, robbed, last = await asyncio.gather(*visitors, return_exceptions=True)
        assert isinstance(robber, ChildDied)
        assert isinstance(robbed, dict)
        assert isinstance(last, dict)
        assert Counter(n for n, _ in home.entries()) == {1: 1, 2: 1, 3: 1}


@pytest.mark.usefixtures("no_taking_back")
async def test_a_job_that_has_not_begun_is_cancelled_without_killing_anybody(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        gate = home.gate()
        before, unwanted, behind = home.visit(1, gate), home.visit(2), home.visit(3)
        pid = await home.arrived(1)
        unwanted.cancel()
        with pytest.raises(asyncio.CancelledError):
            await unwanted
        assert not before.done()
        gate.open()
        assert [(await visitor)["pid"] for visitor in (before, behind)] == [pid, pid]
        assert [n for n, _ in home.entries()] == [1, 3]


@pytest.mark.usefixtures("no_taking_back")
async def test_of_a_child_that_dies_unseen_only_the_one_at_work_dies(tmp_path: Path) -> None:
    """It ends one job, begins the next and dies, all while the worker looks elsewhere."""
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        gate = home.gate()
        ended, begun, behind = home.visit(1, gate), home.visit(2, then="die"), home.visit(3)
        pid = await home.arrived(1)
        gate.open()
        unseen(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        assert (await ended)["pid"] == pid
        with pytest.raises(ChildDied, match="ended with signal 9"):
            await begun
        assert (await behind)["pid"] != pid
        assert [n for n, _ in home.entries()] == [1, 2, 3]


@pytest.mark.usefixtures("no_taking_back")
async def test_a_job_that_has_ended_unseen_is_cancelled_without_killing_anybody(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        gate, other = home.gate(), home.gate()
        ended, begun = home.visit(1, gate), home.visit(2, other)
        pid = await home.arrived(1)
        gate.open()
        unseen(lambda: home.visits(2) == 1)
        ended.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ended
        other.open()
        assert (await begun)["pid"] == pid


async def test_a_job_that_has_begun_unseen_does_not_begin_again(tmp_path: Path) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        begun = home.visit(1, home.gate())
        await asyncio.sleep(0)  # in which it is given to the child
        unseen(lambda: home.visits(1) == 1)
        home.processes._minders[0].kill()  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(ChildDied):
            await begun
        await home.visit(2)
        assert [n for n, _ in home.entries()] == [1, 2]


async def test_a_child_that_is_dead_is_missed_though_its_own_child_lives(tmp_path: Path) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        with pytest.raises(ChildDied, match="ended with signal 9"):
            await home.visit(1, home.gate(), then="orphan")
        assert (await home.visit(2))["n"] == 2


async def test_a_child_that_does_not_take_its_job_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STUCK", 0.2)
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        pid = (await home.visit(1))["pid"]
        os.kill(pid, signal.SIGSTOP)
        assert (await home.visit(2, timeout=0.1 + DEADLINE / 100))["pid"] != pid
        assert home.visits(2) == 1


async def test_progress_goes_to_the_job_at_work(tmp_path: Path) -> None:
    async with house(tmp_path, size=2) as home, asyncio.timeout(DEADLINE):
        await asyncio.gather(*(home.visit(n) for n in range(100)))
        assert {n: home.reports[n] for n in range(100)} == {
            n: [protocol.Progress(n, None)] for n in range(100)
        }


async def test_what_a_job_leaves_behind_does_not_speak_for_the_next(tmp_path: Path) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        gate, speak, told = home.gate(), home.gate(), tmp_path / "told"
        data = {"gate": speak.path, "told": str(told)}
        await home.run(process_jobs.leave_somebody.handler, data, [])
        following = home.visit(1, gate)
        await home.arrived(1)
        speak.open()
        await eventually(told.exists)
        gate.open()
        await following
        assert home.reports[1] == [protocol.Progress(1, None)]


@pytest.mark.usefixtures("no_taking_back")
async def test_a_handler_that_forks_does_not_double_the_jobs_behind_it(tmp_path: Path) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        gate = home.gate()
        visitors = [home.visit(1, gate, then="fork"), home.visit(2), home.visit(3)]
        pid = await home.arrived(1)
        gate.open()
        assert {visitor["pid"] for visitor in await asyncio.gather(*visitors)} == {pid}
        assert [n for n, _ in home.entries()] == [1, 2, 3]


async def test_a_job_of_any_size_arrives_in_its_turn(tmp_path: Path) -> None:
    sizes = [10, 15_000, 200_000, 10, 100_000, 20_000, 15_000, 15_000, *[15_900] * 20, 10]
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        visitors = [home.visit(n, luggage="x" * size) for n, size in enumerate(sizes)]
        arrived = await asyncio.gather(*visitors)
        assert [visitor["luggage"] for visitor in arrived] == sizes
        assert [n for n, _ in home.entries()] == list(range(len(sizes)))


@pytest.mark.usefixtures("no_taking_back")
async def test_a_large_job_is_cancelled_like_any_other(tmp_path: Path) -> None:
    async with house(tmp_path) as home, asyncio.timeout(DEADLINE):
        large = home.visit(1, home.gate(), luggage="x" * 200_000)
        await home.arrived(1)
        following = home.visit(2)
        await asyncio.sleep(0)
        assert home.processes._minders[0].load == 1, "nothing is given behind it"  # pyright: ignore[reportPrivateUsage]
        large.cancel()
        with pytest.raises(asyncio.CancelledError):
            await large
        assert (await following)["n"] == 2


async def test_a_child_that_cannot_start_costs_one_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ProcessPool(1)
    home = House(pool, tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/bin/false")
        with pytest.raises(ChildDied, match="ended with exit code 1"):
            await home.visit(1)
    assert (await home.visit(2))["n"] == 2
    await pool.close()


DIES_BEFORE_IT_BEGINS = """
import os, socket, sys
from howdah.run.process import protocol
with socket.socket(fileno=int(sys.argv[1])) as pipe:
    pipe.sendall(protocol.frame(protocol.Ready()))
    os.read(int(sys.argv[2]), 100_000)
    os._exit(1)
"""


async def test_a_job_that_no_child_lives_to_begin_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ProcessPool(1)
    home = House(pool, tmp_path)
    async with asyncio.timeout(DEADLINE):
        with monkeypatch.context() as broken:
            broken.setattr(child_process, "BOOT", DIES_BEFORE_IT_BEGINS)
            with pytest.raises(ChildDied, match="ended with exit code 1"):
                await home.visit(1)
        assert (await home.visit(2))["n"] == 2
        assert [n for n, _ in home.entries()] == [2]
        await pool.close()


async def test_children_that_end_no_job_are_started_more_and_more_slowly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(process_pool, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(process_pool, "LONGEST_PAUSE", 3600.0)
    pool = ProcessPool(1)
    home = House(pool, tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/bin/false")
        popen: Any = subprocess.Popen

        def counted(*args: Any, **more: Any) -> Any:
            started.append(args)
            return popen(*args, **more)

        broken.setattr(subprocess, "Popen", counted)
        visitors = [home.visit(n) for n in range(5)]
        await eventually(lambda: pool._pause is not None)  # pyright: ignore[reportPrivateUsage]
        assert len(started) == 2, "the first may have had bad luck; after the second comes a pause"
        await eventually(lambda: sum(visitor.done() for visitor in visitors) == 2)
    pool._go_on()  # pyright: ignore[reportPrivateUsage]
    left = [visitor for visitor in visitors if not visitor.done()]
    assert [visitor["n"] for visitor in await asyncio.gather(*left)] == [2, 3, 4]
    with pytest.raises(ChildDied, match="ended with signal 9"):
        await home.visit(5, then="die")
    assert pool._fruitless == 0, "this one had ended jobs before"  # pyright: ignore[reportPrivateUsage]
    assert all(isinstance(visitor.exception(), ChildDied) for visitor in visitors[:2])
    await pool.close()


async def test_closing_leaves_no_child(tmp_path: Path) -> None:
    async with house(tmp_path, size=2) as home:
        visitors = [home.visit(1, home.gate()), home.visit(2, home.gate())]
        pids = [await home.arrived(1), await home.arrived(2)]
    assert not any(map(psutil.pid_exists, pids))
    for visitor in visitors:
        with pytest.raises(ChildDied):
            await visitor


@pytest.mark.slow
async def test_whatever_happens_no_job_runs_twice(tmp_path: Path) -> None:
    """Many jobs, some of which die, time out or are cancelled at any moment."""
    chance = random.Random(1)
    fates = chance.choices(["fine", "die", "stay", "cancelled"], [85, 3, 3, 9], k=400)
    async with house(tmp_path, size=2) as home:
        visitors: list[Visitor] = []
        for n, fate in enumerate(fates):
            gate = home.gate() if fate == "stay" else None
            then = "die" if fate == "die" else "return"
            visitors.append(home.visit(n, gate, then=then, timeout=0.3 if gate else None))
            if fate == "cancelled":
                asyncio.get_running_loop().call_later(chance.random() / 20, visitors[-1].cancel)
            if n % 20 == 0:
                await asyncio.sleep(0)
            if n % 100 == 0:
                await visitors[chance.randrange(n + 1)] if fates[n] == "fine" else None
        ended = await asyncio.gather(*visitors, return_exceptions=True)
        times = Counter(n for n, _ in home.entries())
    assert max(times.values()) == 1, "no handler runs twice within one attempt"
    kinds = {"die": ChildDied, "stay": TimeoutError, "fine": dict}
    for n, (fate, how) in enumerate(zip(fates, ended, strict=True)):
        if fate == "cancelled":
            assert isinstance(how, asyncio.CancelledError | dict)
        else:
            assert isinstance(how, kinds[fate]), (n, fate, how)
            assert times[n] == 1
