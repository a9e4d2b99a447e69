"""Child processes are kept busy, and no job is delayed, lost or run twice because of it.

The children are real, without a database: each `run` is one attempt, and each call of the handler
writes a line to a log file.
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
from collections.abc import AsyncGenerator
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
from tests.support.waiting import DEADLINE, eventually, wait_until

JobTask = asyncio.Task[dict[str, int]]


class FileLock:
    """A file lock that handlers wait for."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self._file = path.open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def release(self) -> None:
        self._file.close()


class JobRunner:
    """Runs jobs in a process pool and reads the log that the handlers write."""

    def __init__(self, processes: ProcessPool, folder: Path) -> None:
        self.processes = processes
        self.log = folder / "log"
        self.log.touch()
        self._folder = folder
        self._locks: list[FileLock] = []
        self.reports: dict[int, list[object]] = {}

    def lock(self) -> FileLock:
        lock = FileLock(self._folder / f"lock{len(self._locks)}")
        self._locks.append(lock)
        return lock

    def release_locks(self) -> None:
        for lock in self._locks:
            lock.release()

    def start(
        self, n: int, lock: FileLock | None = None, *, timeout: float | None = None, **more: Any
    ) -> JobTask:
        data = {"log": str(self.log), "n": n, "lock": lock and lock.path, **more}
        return asyncio.create_task(self._run_logged(n, data, timeout))

    async def _run_logged(self, n: int, data: object, timeout: float | None) -> dict[str, int]:
        reports = self.reports.setdefault(n, [])
        returned = await self.run(process_jobs.log_and_wait.handler, data, reports, timeout)
        assert returned.result is not None
        return json.loads(returned.result)

    async def run(
        self, handler: Handler, data: object, reports: list[object], timeout: float | None = None
    ) -> protocol.Returned:
        now = time.time()
        claim = Claim(uuid4(), handler.job_type, 100, json.dumps(data), 1, 1, now, now, now)
        ended = await self.processes.run(
            handler, claim, lambda _task, message: reports.append(message), timeout
        )
        assert isinstance(ended, protocol.Returned), ended
        return ended

    def entries(self) -> list[tuple[int, int]]:
        """Return the number and the process of each call."""
        lines = self.log.read_text().splitlines()
        return [(int(n), int(pid)) for n, pid in map(str.split, lines)]

    def calls(self, n: int) -> int:
        return sum(number == n for number, _ in self.entries())

    async def begun(self, n: int) -> int:
        """Wait until this job has begun; returns its process."""
        await eventually(lambda: self.calls(n) == 1)
        return dict(self.entries())[n]


@asynccontextmanager
async def warm_runner(folder: Path, size: int = 1) -> AsyncGenerator[JobRunner]:
    """Give a full pool whose children ran short jobs, so that they get jobs in advance."""
    pool = ProcessPool(size)
    runner = JobRunner(pool, folder)
    try:
        first = runner.lock()
        tasks = [runner.start(-1 - n, first) for n in range(size)]
        await eventually(lambda: len(runner.entries()) == size)
        first.release()
        await asyncio.gather(*tasks)
        while any(m._prefetch.limit < 10 for m in pool._supervisors):  # pyright: ignore[reportPrivateUsage]
            await asyncio.gather(*(runner.start(-9) for _ in range(size)))
        runner.log.write_text("")
        yield runner
    finally:
        await pool.close()
        runner.release_locks()


@pytest.fixture
def no_return_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a child keep the jobs that it has in advance, however long the running one takes."""
    monkeypatch.setattr(supervisor, "LONG", 3600.0)


@pytest.mark.parametrize("hold_gil", [False, True], ids=["sleeping", "holding the GIL"])
async def test_a_job_that_waits_for_a_long_one_moves_to_a_free_child(
    tmp_path: Path, hold_gil: bool
) -> None:
    async with warm_runner(tmp_path, size=2) as runner, asyncio.timeout(DEADLINE):
        first_lock, second_lock = runner.lock(), runner.lock()
        first = runner.start(1, first_lock, hold_gil=hold_gil)
        second = runner.start(2, second_lock, hold_gil=hold_gil)
        await runner.begun(1)
        pid = await runner.begun(2)
        queued = [runner.start(3), runner.start(4)]  # one in each child
        second_lock.release()
        assert {task["pid"] for task in await asyncio.gather(*queued)} == {pid}
        assert (await second)["pid"] == pid
        assert not first.done()
        first_lock.release()
        await first
    assert Counter(n for n, _ in runner.entries()) == {1: 1, 2: 1, 3: 1, 4: 1}


@pytest.mark.usefixtures("no_return_of_jobs")
async def test_a_timeout_counts_the_run_and_not_the_wait(tmp_path: Path) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        lock = runner.lock()
        before, queued = runner.start(1, lock), runner.start(2, timeout=0.5)
        pid = await runner.begun(1)
        await asyncio.sleep(0.8)  # the wait alone is longer than the timeout
        lock.release()
        assert [(await task)["pid"] for task in (before, queued)] == [pid, pid]


@pytest.mark.usefixtures("no_return_of_jobs")
async def test_a_timeout_does_not_affect_the_jobs_queued_after_it(tmp_path: Path) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        slow = runner.start(1, runner.lock(), timeout=0.5)
        queued = [runner.start(2), runner.start(3, timeout=0.5)]
        pid = await runner.begun(1)
        with pytest.raises(TimeoutError):
            await slow
        assert not psutil.pid_exists(pid)
        assert [task["n"] for task in await asyncio.gather(*queued)] == [2, 3]
        assert [n for n, _ in runner.entries()] == [1, 2, 3]


@pytest.mark.usefixtures("no_return_of_jobs")
async def test_a_cancellation_keeps_the_order_of_the_jobs_queued_after_it(tmp_path: Path) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        cancelled = runner.start(1, runner.lock())
        queued = [runner.start(n) for n in range(2, 40)]  # more than a child gets in advance
        pid = await runner.begun(1)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert not psutil.pid_exists(pid), "a cancelled job runs no more"
        await asyncio.gather(*queued)
        assert [n for n, _ in runner.entries()] == list(range(1, 40))


@pytest.mark.usefixtures("no_return_of_jobs")
async def test_garbage_from_a_job_does_not_affect_the_job_queued_after_it(tmp_path: Path) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        lock = runner.lock()
        garbled, queued = runner.start(1, lock, then="send_garbage"), runner.start(2)
        pid = await runner.begun(1)
        lock.release()
        with pytest.raises(ChildDied, match="sent bytes that are no message"):
            await garbled
        assert (await queued)["pid"] != pid
        assert [n for n, _ in runner.entries()] == [1, 2]


@pytest.mark.usefixtures("no_return_of_jobs")
async def test_a_job_that_a_dead_child_took_and_did_not_begin_goes_to_another(
    tmp_path: Path,
) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        lock = runner.lock()
        tasks = [runner.start(1, lock, then="steal_next"), runner.start(2), runner.start(3)]
        await runner.begun(1)
        lock.release()
        first, second, third = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(first, ChildDied)
        assert isinstance(second, dict)
        assert isinstance(third, dict)
        assert Counter(n for n, _ in runner.entries()) == {1: 1, 2: 1, 3: 1}


@pytest.mark.usefixtures("no_return_of_jobs")
async def test_cancelling_a_job_that_has_not_begun_kills_no_child(
    tmp_path: Path,
) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        lock = runner.lock()
        before, cancelled, queued = runner.start(1, lock), runner.start(2), runner.start(3)
        pid = await runner.begun(1)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        assert not before.done()
        lock.release()
        assert [(await task)["pid"] for task in (before, queued)] == [pid, pid]
        assert [n for n, _ in runner.entries()] == [1, 3]


@pytest.mark.usefixtures("no_return_of_jobs")
async def test_a_child_that_dies_fails_only_the_job_it_ran(tmp_path: Path) -> None:
    """The child ends one job, begins the next and dies before the worker reads its messages."""
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        lock = runner.lock()
        ended, begun, queued = runner.start(1, lock), runner.start(2, then="die"), runner.start(3)
        pid = await runner.begun(1)
        lock.release()
        wait_until(lambda: psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
        assert (await ended)["pid"] == pid
        with pytest.raises(ChildDied, match="ended with signal 9"):
            await begun
        assert (await queued)["pid"] != pid
        assert [n for n, _ in runner.entries()] == [1, 2, 3]


@pytest.mark.usefixtures("no_return_of_jobs")
async def test_cancelling_a_job_that_has_ended_kills_no_child(
    tmp_path: Path,
) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        lock, second_lock = runner.lock(), runner.lock()
        ended, begun = runner.start(1, lock), runner.start(2, second_lock)
        pid = await runner.begun(1)
        lock.release()
        wait_until(lambda: runner.calls(2) == 1)
        ended.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ended
        second_lock.release()
        assert (await begun)["pid"] == pid


async def test_a_job_that_has_begun_in_a_killed_child_does_not_begin_again(tmp_path: Path) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        begun = runner.start(1, runner.lock())
        await asyncio.sleep(0)  # now the child has the job
        wait_until(lambda: runner.calls(1) == 1)
        runner.processes._supervisors[0].kill()  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(ChildDied):
            await begun
        await runner.start(2)
        assert [n for n, _ in runner.entries()] == [1, 2]


async def test_a_dead_child_is_noticed_while_its_own_child_lives(tmp_path: Path) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        with pytest.raises(ChildDied, match="ended with signal 9"):
            await runner.start(1, runner.lock(), then="orphan")
        assert (await runner.start(2))["n"] == 2


async def test_a_child_that_does_not_take_its_job_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "STUCK", 0.2)
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        pid = (await runner.start(1))["pid"]
        os.kill(pid, signal.SIGSTOP)
        assert (await runner.start(2, timeout=0.1 + DEADLINE / 100))["pid"] != pid
        assert runner.calls(2) == 1


async def test_progress_goes_to_the_job_that_reported_it(tmp_path: Path) -> None:
    async with warm_runner(tmp_path, size=2) as runner, asyncio.timeout(DEADLINE):
        await asyncio.gather(*(runner.start(n) for n in range(100)))
        assert {n: runner.reports[n] for n in range(100)} == {
            n: [protocol.Progress(n, None)] for n in range(100)
        }


async def test_a_thread_of_an_ended_job_cannot_report_for_the_next_job(tmp_path: Path) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        lock, report_lock, refused = runner.lock(), runner.lock(), tmp_path / "refused"
        data = {"lock": report_lock.path, "refused": str(refused)}
        await runner.run(process_jobs.leave_thread.handler, data, [])
        following = runner.start(1, lock)
        await runner.begun(1)
        report_lock.release()
        await eventually(refused.exists)
        lock.release()
        await following
        assert runner.reports[1] == [protocol.Progress(1, None)]


@pytest.mark.usefixtures("no_return_of_jobs")
async def test_a_handler_that_forks_does_not_double_the_jobs_queued_after_it(
    tmp_path: Path,
) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        lock = runner.lock()
        tasks = [runner.start(1, lock, then="fork"), runner.start(2), runner.start(3)]
        pid = await runner.begun(1)
        lock.release()
        assert {task["pid"] for task in await asyncio.gather(*tasks)} == {pid}
        assert [n for n, _ in runner.entries()] == [1, 2, 3]


async def test_a_job_of_any_size_arrives_in_its_turn(tmp_path: Path) -> None:
    sizes = [10, 15_000, 200_000, 10, 100_000, 20_000, 15_000, 15_000, *[15_900] * 20, 10]
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        tasks = [runner.start(n, padding="x" * size) for n, size in enumerate(sizes)]
        results = await asyncio.gather(*tasks)
        assert [result["padding"] for result in results] == sizes
        assert [n for n, _ in runner.entries()] == list(range(len(sizes)))


@pytest.mark.usefixtures("no_return_of_jobs")
async def test_a_large_job_is_cancelled_like_any_other(tmp_path: Path) -> None:
    async with warm_runner(tmp_path) as runner, asyncio.timeout(DEADLINE):
        large = runner.start(1, runner.lock(), padding="x" * 200_000)
        await runner.begun(1)
        following = runner.start(2)
        await asyncio.sleep(0)
        assert runner.processes._supervisors[0].load == 1, "no job is sent after it"  # pyright: ignore[reportPrivateUsage]
        large.cancel()
        with pytest.raises(asyncio.CancelledError):
            await large
        assert (await following)["n"] == 2


async def test_a_child_that_cannot_start_costs_one_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ProcessPool(1)
    runner = JobRunner(pool, tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/bin/false")
        with pytest.raises(ChildDied, match="ended with exit code 1"):
            await runner.start(1)
    assert (await runner.start(2))["n"] == 2
    await pool.close()


DIES_BEFORE_IT_BEGINS = """
import os, socket, sys
from howdah.run.process import protocol
with socket.socket(fileno=int(sys.argv[1])) as pipe:
    pipe.sendall(protocol.frame(protocol.Ready()))
    os.read(int(sys.argv[2]), 100_000)
    os._exit(1)
"""


async def test_a_job_fails_if_children_die_before_they_begin_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = ProcessPool(1)
    runner = JobRunner(pool, tmp_path)
    async with asyncio.timeout(DEADLINE):
        with monkeypatch.context() as broken:
            broken.setattr(child_process, "BOOT", DIES_BEFORE_IT_BEGINS)
            with pytest.raises(ChildDied, match="ended with exit code 1"):
                await runner.start(1)
        assert (await runner.start(2))["n"] == 2
        assert [n for n, _ in runner.entries()] == [2]
        await pool.close()


async def test_children_that_end_no_job_are_restarted_with_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []
    monkeypatch.setattr(process_pool, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(process_pool, "LONGEST_PAUSE", 3600.0)
    pool = ProcessPool(1)
    runner = JobRunner(pool, tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(sys, "executable", "/bin/false")
        popen: Any = subprocess.Popen

        def counted(*args: Any, **more: Any) -> Any:
            started.append(args)
            return popen(*args, **more)

        broken.setattr(subprocess, "Popen", counted)
        tasks = [runner.start(n) for n in range(5)]
        await eventually(lambda: pool._pause is not None)  # pyright: ignore[reportPrivateUsage]
        assert len(started) == 2, "the pause begins after the second child"
        await eventually(lambda: sum(task.done() for task in tasks) == 2)
    pool._end_pause()  # pyright: ignore[reportPrivateUsage]
    left = [task for task in tasks if not task.done()]
    assert [task["n"] for task in await asyncio.gather(*left)] == [2, 3, 4]
    with pytest.raises(ChildDied, match="ended with signal 9"):
        await runner.start(5, then="die")
    assert pool._useless_children == 0, "this child had ended jobs before"  # pyright: ignore[reportPrivateUsage]
    assert all(isinstance(task.exception(), ChildDied) for task in tasks[:2])
    await pool.close()


async def test_closing_leaves_no_child(tmp_path: Path) -> None:
    async with warm_runner(tmp_path, size=2) as runner:
        tasks = [runner.start(1, runner.lock()), runner.start(2, runner.lock())]
        pids = [await runner.begun(1), await runner.begun(2)]
    assert not any(map(psutil.pid_exists, pids))
    for task in tasks:
        with pytest.raises(ChildDied):
            await task


@pytest.mark.slow
async def test_no_job_runs_twice_when_others_die_time_out_or_are_cancelled(tmp_path: Path) -> None:
    """Run many jobs, of which some die, time out or are cancelled at any moment."""
    rng = random.Random(1)
    plans = rng.choices(["fine", "die", "stay", "cancelled"], [85, 3, 3, 9], k=400)
    async with warm_runner(tmp_path, size=2) as runner:
        tasks: list[JobTask] = []
        for n, plan in enumerate(plans):
            lock = runner.lock() if plan == "stay" else None
            then = "die" if plan == "die" else "return"
            tasks.append(runner.start(n, lock, then=then, timeout=0.3 if lock else None))
            if plan == "cancelled":
                asyncio.get_running_loop().call_later(rng.random() / 20, tasks[-1].cancel)
            if n % 20 == 0:
                await asyncio.sleep(0)
            if n % 100 == 0:
                await tasks[rng.randrange(n + 1)] if plans[n] == "fine" else None
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        times = Counter(n for n, _ in runner.entries())
    assert max(times.values()) == 1, "no handler runs twice within one attempt"
    kinds = {"die": ChildDied, "stay": TimeoutError, "fine": dict}
    for n, (plan, how) in enumerate(zip(plans, ended, strict=True)):
        if plan == "cancelled":
            assert isinstance(how, asyncio.CancelledError | dict)
        else:
            assert isinstance(how, kinds[plan]), (n, plan, how)
            assert times[n] == 1
