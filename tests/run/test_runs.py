"""A worker runs the jobs of an ordered key one after the other, many of them with one claim."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from howdah import Cancel, Fail, HowdahError, Queue, Retry, Snooze, State, runs
from howdah.claim import run_claims
from howdah.in_hand import InHand
from howdah.job import Claim
from howdah.outcomes import Complete, Ending, Outcome, Release
from howdah.run.attempt import Attempt
from howdah.runs import LAST, LONGEST, MOST_SKIPPED, WORK, Runs
from howdah.settle import Settler
from howdah.states import Verb
from howdah.store import Store
from tests.run import process_jobs
from tests.support.waiting import eventually

JOBS = 40


def one(_: object) -> str:
    """Return the key of all jobs."""
    return "one"


class Log:
    """What the handlers of a test did."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.at_once = self.most_at_once = 0
        self._lock = threading.Lock()

    def enter(self, n: int) -> None:
        with self._lock:
            self.began.append(n)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)

    def leave(self) -> None:
        with self._lock:
            self.at_once -= 1


@pytest.fixture(params=[4, LONGEST])
def found(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> list[int]:
    """How many jobs each call for runs has claimed: in short and in long parts."""
    monkeypatch.setattr(runs, "LONGEST", request.param)
    sizes: list[int] = []
    claim_runs = run_claims.claim_runs

    async def counted(
        store: Store, worker_id: str, heads: Sequence[tuple[Claim, int]]
    ) -> dict[UUID, list[Claim]]:
        following = await claim_runs(store, worker_id, heads)
        sizes.append(sum(map(len, following.values())))
        return following

    monkeypatch.setattr(run_claims, "claim_runs", counted)
    return sizes


async def enqueue(queue: Queue, jobs: int = JOBS, max_attempts: int = 3) -> list[UUID]:
    """Enqueue jobs of one key; returns their ids in this order."""
    rows = await queue.store.fetch(
        "insert into howdah.jobs (job_type, key, max_attempts, data) "
        "select 'step', 'one', $2, jsonb_build_object('n', n) from generate_series(0, $1) as n "
        "order by n returning id",
        jobs - 1,
        max_attempts,
    )
    return [row[0] for row in rows]


async def all_ended(queue: Queue) -> bool:
    return not await queue.store.fetchval("select count(*) from howdah.jobs_live")


async def run_all(queue: Queue, *, concurrency: int = 10, jobs: int = JOBS) -> None:
    """Enqueue the jobs of one key and run them."""
    await enqueue(queue, jobs)
    async with queue.worker(concurrency=concurrency):
        await eventually(lambda: all_ended(queue), "all jobs have ended")


def define(queue: Queue, how: str, log: Log) -> None:
    options: dict[str, Any] = {"name": "step", "key": one, "ordered": True}
    if how.endswith("with a timeout"):
        options["timeout"] = 60
    if how == "async":

        @queue.job(**options)
        async def at_once(n: int) -> None:
            log.enter(n)
            log.leave()

    elif how.startswith("async"):

        @queue.job(**options)
        async def waits(n: int) -> None:
            log.enter(n)
            await asyncio.sleep(0)
            log.leave()

    else:

        @queue.job(**options)
        def in_thread(n: int) -> None:
            log.enter(n)
            log.leave()


HOW = ["async", "async, waits", "async with a timeout", "thread", "thread with a timeout"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("concurrency", [1, 10])
async def test_the_jobs_of_a_key_run_in_order_and_one_at_a_time(
    queue: Queue, found: list[int], how: str, concurrency: int
) -> None:
    log = Log()
    define(queue, how, log)
    await run_all(queue, concurrency=concurrency)
    assert log.began == list(range(JOBS))
    assert log.most_at_once == 1
    assert sum(found) > JOBS / 4
    assert await queue.counts() == {"step": {State.COMPLETED: JOBS}}


async def test_runs_of_processes_are_in_order(
    queue: Queue, found: list[int], tmp_path: Path
) -> None:
    options: dict[str, Any] = {"name": "append", "key": "path", "ordered": True, "run": "process"}
    append = queue.job(**options)(process_jobs.append.function)
    written = tmp_path / "order"
    await append.enqueue_many([{"path": str(written), "n": n} for n in range(JOBS)])
    async with queue.worker(concurrency=4, processes=2):
        await eventually(lambda: all_ended(queue), "all jobs have ended")
    assert written.read_text(encoding="utf-8").split() == [str(n) for n in range(JOBS)]
    assert sum(found) > 0


async def test_many_keys_run_side_by_side_each_in_order(queue: Queue, found: list[int]) -> None:
    began: dict[int, list[int]] = {key: [] for key in range(7)}

    @queue.job(key="key", ordered=True)
    async def step(key: int, n: int) -> None:
        began[key].append(n)
        await asyncio.sleep(0)

    await step.enqueue_many([{"key": n % 7, "n": n} for n in range(210)])
    async with queue.worker(concurrency=3) as worker:
        await worker.run_until_idle()
    assert began == {key: list(range(key, 210, 7)) for key in range(7)}
    assert sum(found) > 50


async def test_plain_jobs_ask_for_no_run(queue: Queue, found: list[int]) -> None:
    log = Log()

    @queue.job(key=one)
    async def step(n: int) -> None:
        log.enter(n)
        log.leave()

    await run_all(queue, jobs=5)
    assert (len(log.began), found) == (5, [])


AGAIN: dict[str, Callable[[], Exception]] = {
    "retry": lambda: Retry(after=0),
    "retry later": lambda: Retry(after=0.01),
    "snooze": lambda: Snooze(0.01),
    "an error": lambda: ValueError("once"),
}


@pytest.mark.parametrize("again", AGAIN)
@pytest.mark.parametrize("how", ["async", "thread"])
async def test_a_job_that_runs_again_holds_its_run_up(
    queue: Queue, found: list[int], again: str, how: str
) -> None:
    log = Log()

    def act(n: int) -> None:
        log.enter(n)
        log.leave()
        if n % 10 == 5 and log.began.count(n) == 1:
            raise AGAIN[again]()

    async def act_async(n: int) -> None:
        act(n)

    function: Any = act if how == "thread" else act_async
    options: dict[str, Any] = {"name": "step", "key": one, "ordered": True}
    queue.job(**options, backoff=0.01)(function)
    await run_all(queue)
    twice = [[n, n] if n % 10 == 5 else [n] for n in range(JOBS)]
    assert log.began == [n for runs in twice for n in runs]
    assert sum(found) > 0
    attempts = await queue.store.fetchval("select max(attempts) from howdah.jobs")
    assert attempts == (1 if again == "snooze" else 2)


@pytest.mark.parametrize("end", [Fail("no"), Cancel("no")])
async def test_a_run_goes_on_after_a_job_that_ended_badly(
    queue: Queue, found: list[int], end: Exception
) -> None:
    log = Log()

    @queue.job(key=one, ordered=True)
    async def step(n: int) -> None:
        log.enter(n)
        log.leave()
        if n % 3 == 1:
            raise end

    await run_all(queue)
    assert log.began == list(range(JOBS))
    assert sum(found) > JOBS / 4


async def test_payloads_that_cannot_be_read_end_a_run_job_by_job(
    queue: Queue, found: list[int]
) -> None:
    """As many as would be too deep for Python if each called the next."""
    log = Log()

    @queue.job(key=one, ordered=True)
    def step(n: int) -> None:
        log.enter(n)
        log.leave()

    await enqueue(queue, 1201)
    unreadable = 'update howdah.jobs_live set data = \'{"n": "x"}\' where arrival % 600 <> 1'
    await queue.store.fetch(unreadable)
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert log.began == [0, 600, 1200]
    counts = await queue.counts()
    assert counts == {"step": {State.COMPLETED: 3, State.FAILED: 1198}}


async def test_a_job_inherits_no_context_of_the_job_before_it(
    queue: Queue, found: list[int]
) -> None:
    variable = contextvars.ContextVar("variable", default=-1)
    seen: list[int] = []

    @queue.job(key=one, ordered=True)
    async def step(n: int) -> None:
        if n % 3:
            await asyncio.sleep(0)
        seen.append(variable.get())
        variable.set(n)

    await run_all(queue)
    assert seen == [-1] * JOBS
    assert sum(found) > 0


async def test_a_worker_that_stops_releases_the_rest_of_a_run(
    queue: Queue, found: list[int]
) -> None:
    blocked, go_on = asyncio.Event(), asyncio.Event()
    began: list[int] = []

    @queue.job(key=one, ordered=True)
    async def step(n: int) -> None:
        began.append(n)
        if n == JOBS // 2:
            blocked.set()
            await go_on.wait()

    await enqueue(queue)
    worker = queue.worker()
    await worker.start()
    await blocked.wait()
    stopping = asyncio.create_task(worker.stop())
    held = "select count(*) from howdah.jobs where worker_id is not null and status = 'claimed'"
    async with asyncio.timeout(10):
        while await queue.store.fetchval(held + " and ready_at is null"):
            await asyncio.sleep(0.01)
    go_on.set()
    await stopping
    assert began == list(range(JOBS // 2 + 1))
    assert await queue.store.fetchval("select max(attempts) from howdah.jobs_live") == 0
    assert sum(found) > 0
    async with queue.worker() as other:
        await other.run_until_idle()
    assert began == list(range(JOBS))


async def test_a_handler_that_is_cancelled_from_outside_ends_its_run(queue: Queue) -> None:
    """Whoever cancels a job of a run, the others follow it, each once."""
    began: list[int] = []
    blocked = asyncio.Event()

    @queue.job(key=one, ordered=True)
    async def step(n: int) -> None:
        began.append(n)
        if n == 20:
            blocked.set()
            await asyncio.sleep(60)

    ids = await enqueue(queue)
    async with queue.worker() as worker:
        await blocked.wait()
        await queue.cancel(ids[20])
        await worker.run_until_idle()
    assert began == list(range(JOBS))


@pytest.mark.parametrize("slots", [1, 5])
async def test_a_timeout_for_good_lets_the_run_go_on_and_its_thread_keeps_its_slot(
    queue: Queue, slots: int
) -> None:
    began: list[int] = []
    release = threading.Event()

    @queue.job(key=one, ordered=True, timeout=0.2)
    def step(n: int) -> None:
        began.append(n)
        if n == 20:
            release.wait(30)

    await enqueue(queue, max_attempts=1)
    async with queue.worker(concurrency=slots, threads=slots) as worker:
        async with asyncio.timeout(30):
            while len(began) < (21 if slots == 1 else JOBS):
                await asyncio.sleep(0.01)
        release.set()
        await worker.run_until_idle()
    assert began == list(range(JOBS))


async def test_a_call_for_runs_that_fails_costs_no_job(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    define(queue, "async", log)
    failed: list[int] = []

    async def fails(*_: object) -> dict[UUID, list[Claim]]:
        failed.append(1)
        raise HowdahError("the answer was lost")

    monkeypatch.setattr(run_claims, "claim_runs", fails)
    await run_all(queue)
    assert log.began == list(range(JOBS))
    assert failed


async def test_the_jobs_of_a_lost_answer_are_released_and_run_in_order(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    define(queue, "async", log)
    claim_runs = run_claims.claim_runs
    lost: list[int] = []

    async def loses(
        store: Store, worker_id: str, heads: Sequence[tuple[Claim, int]]
    ) -> dict[UUID, list[Claim]]:
        runs = await claim_runs(store, worker_id, heads)
        if not lost:
            lost.append(sum(map(len, runs.values())))
            raise HowdahError("the answer was lost")
        return runs

    monkeypatch.setattr(run_claims, "claim_runs", loses)
    await run_all(queue)
    assert log.began == list(range(JOBS))
    assert lost[0] > 0


# ── how long ──────────────────────────────────────────────────────────────────────────────


def claimed(job_type: str = "step", *, in_run: bool = True) -> Claim:
    return Claim(uuid4(), job_type, 100, "{}", 1, 3, 0.0, 0.0, 0.0, in_run=in_run)


def test_a_run_is_as_long_as_the_pace_of_its_type_allows() -> None:
    kept = Runs()
    assert kept.wanted(claimed()) == 0, "nothing is known of the type"
    kept.ended("step", WORK / 10)
    assert kept.wanted(claimed()) == 10
    for _ in range(100):
        kept.ended("step", 0.0)
    assert kept.wanted(claimed()) == LONGEST
    kept.ended("step", 10.0)
    assert kept.wanted(claimed()) == 0, "one slow job is enough"


def test_a_type_without_runs_is_asked_for_less_and_less() -> None:
    kept = Runs()
    kept.ended("step", 0.001)
    asked = 0
    for _ in range(200):
        if kept.wanted(claimed()):
            asked += 1
            kept.found("step", 0)
    assert asked < 5 + 200 / MOST_SKIPPED
    while not kept.wanted(claimed()):
        pass
    kept.found("step", 3)
    assert kept.wanted(claimed())


def test_a_run_that_has_lasted_long_does_not_go_on() -> None:
    kept = Runs()
    head, following = claimed(), [claimed(), claimed()]
    kept.add(head, following, 100.0)
    assert kept.next_after(head, 100.0) is following[0]
    assert kept.next_after(following[0], 100.1 + LAST) is None
    assert list(kept.take(following[0])) == following[1:]
    assert not kept


def test_a_run_asks_for_more_when_a_part_of_it_begins() -> None:
    kept = Runs()
    asked: list[int] = []
    kept.on_growing = lambda: asked.append(1)
    kept.ended("step", 0.001)
    head, following, more = claimed(), [claimed(), claimed()], [claimed(), claimed()]
    kept.add(head, following, 0.0)
    assert kept.next_after(head, 0.0) is following[0]
    (run,) = kept.growing()
    assert (asked, run.last) == ([1], following[1])
    assert kept.next_after(following[0], 0.0) is following[1]
    assert kept.growing() == [], "it is asked for"
    assert kept.grown(run, more, 0.0) == ([], [])
    assert kept.next_after(following[1], 0.0) is more[0]
    assert kept.growing() == [run]
    assert kept.grown(run, [], 0.0) == ([], [])
    assert kept.next_after(more[0], 0.0) is more[1]
    assert kept.growing() == [], "there is no more"


@pytest.mark.parametrize("ended", [True, False])
def test_jobs_that_come_after_the_end_of_a_run_start_anew_or_are_released(ended: bool) -> None:
    kept = Runs()
    kept.ended("step", 0.001)
    head, following, more = claimed(), [claimed()], [claimed(), claimed()]
    kept.add(head, following, 0.0)
    kept.next_after(head, 0.0)
    (run,) = kept.growing()
    assert list(kept.take(following[0], ended=ended)) == []
    assert kept.grown(run, more, 0.0) == (([more[0]], []) if ended else ([], more))
    assert kept.next_after(more[0], 0.0) is (more[1] if ended else None)


def test_the_leases_of_runs_are_known() -> None:
    in_hand = InHand[Attempt](1, 1)
    head, following = claimed(), [claimed(), claimed()]
    in_hand.runs.add(head, following, 0.0)
    assert in_hand.leases() == {(claim.id, 1) for claim in following}
    assert in_hand.has_ready


async def test_the_verbs_of_a_run_are_written_one_after_the_other() -> None:
    outcomes: list[Outcome] = [Complete(), Fail("a"), Fail("b"), Complete(), Release(), Complete()]

    def batches_of(*, in_run: bool) -> list[dict[Verb, int]]:
        in_hand = InHand[Attempt](1, 1)
        for outcome in outcomes:
            in_hand.add_ending(Ending(claimed(in_run=in_run), outcome))

        async def nothing() -> dict[Any, str]:
            return {}

        settler = Settler(None, "worker", in_hand, nothing, lambda: None)  # type: ignore[arg-type]
        batches: list[dict[Verb, int]] = []
        while in_hand.endings:
            taken = settler._next_batches()  # pyright: ignore[reportPrivateUsage]
            batches.append({verb: len(endings) for verb, endings in taken.items()})
        return batches

    rest = {Verb.COMPLETE: 2, Verb.RELEASE: 1}
    assert batches_of(in_run=True) == [{Verb.COMPLETE: 1}, {Verb.FAIL: 2}, rest]
    assert batches_of(in_run=False) == [{Verb.COMPLETE: 3, Verb.FAIL: 2, Verb.RELEASE: 1}]
