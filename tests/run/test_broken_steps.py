"""Every step between the end of a handler and its settlement may fail: at most one attempt is lost.

Each step raises for one job, in each run mode. Steps of the worker are patched, values of the
handler are invalid, and the database refuses by constraints.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, cast
from uuid import UUID

import pytest

from howdah import Queue, State
from howdah.handler import Run
from howdah.job import Claim
from howdah.outcomes import Ending
from howdah.run import outcome_of
from howdah.run.context import JobContext
from howdah.run.measures import Measures
from howdah.states import Verb
from howdah.tracing import Drafts
from tests.run import hostile_jobs
from tests.run.test_hostile_handlers import SLOTS, works_on

pytestmark = pytest.mark.slow

BROKEN = RuntimeError("broken on purpose")
RUNS: list[Run] = ["async", "thread", "process"]


def breaking(function: Callable[..., Any], applies: Callable[..., bool]) -> Callable[..., Any]:
    """Return a function that raises if it is called for the bad job."""

    def broken(*args: Any, **kwargs: Any) -> Any:
        if applies(*args, **kwargs):
            raise BROKEN
        return function(*args, **kwargs)

    return broken


class RaisingFilter(logging.Filter):
    """A log filter that raises for every line about the bad job."""

    def filter(self, record: logging.LogRecord) -> bool:
        if "type=bad" in record.getMessage():
            raise BROKEN
        return True


class BrokenTracing:
    """Tracing that raises for the bad job, before its attempt or at its end."""

    def __init__(self, at: str) -> None:
        self.at = at

    def enqueueing(self, draft: Any) -> Any: ...
    def enqueueing_many(self, drafts: Drafts) -> Any: ...

    async def running(self, claim: Claim, attempt: Callable[[], Any]) -> None:
        if claim.job_type.startswith("bad") and self.at == "before":
            raise BROKEN
        await attempt()
        if claim.job_type.startswith("bad") and self.at == "after":
            raise BROKEN

    def ended(self, ending: Ending) -> None:
        if ending.claim.job_type.startswith("bad") and self.at == "end":
            raise BROKEN


def break_measures(patch: pytest.MonkeyPatch) -> None:
    def applies(
        self: Measures, verb: Verb, endings: Sequence[Ending], moved: dict[UUID, Any], at: float
    ) -> bool:
        return any(ending.claim.job_type.startswith("bad") for ending in endings)

    patch.setattr(Measures, "settled", breaking(Measures.settled, applies))


def break_descriptions(patch: pytest.MonkeyPatch) -> None:
    def applies(error: BaseException) -> bool:
        return "of the bad job" in str(error)

    for name in ("describe", "_traceback_of"):
        patch.setattr(outcome_of, name, breaking(getattr(outcome_of, name), applies))


def register(queue: Queue, run: Run, **rules: Any) -> None:
    """Register `bad`, which raises, `bad_result` and `bad_event`, and `innocent`."""
    hostile_jobs.register(queue, run)
    options: Any = {"run": run, **rules}
    for name, function in hostile_jobs.BAD_JOBS[run == "async"].items():
        queue.job(name=name, **options)(function)


REFUSALS = {
    "storing a result": (
        "bad_result",
        (
            "alter table howdah.jobs_finished add constraint no_result check "
            "(job_type <> 'bad_result' or status <> 'completed')"
        ),
        "its ending could not be stored: refused: no result",
    ),
    "storing a retry": (
        "bad",
        (
            "alter table howdah.jobs_live add constraint no_retry check "
            "(job_type <> 'bad' or last_error is null)"
        ),
        "its ending could not be stored: refused: no retry",
    ),
    "storing an event": (
        "bad_event",
        "alter table howdah.job_events add constraint no_event check (kind <> 'of the bad job')",
        "its event 'of the bad job' could not be stored: refused: no event",
    ),
}


async def run_among_others(queue: Queue, job_type: str) -> Any:
    """Run the bad job among others; checks that they complete and the worker works."""
    bad_job = await queue.enqueue(job_type)
    others = [await queue.enqueue("innocent", {"n": n}) for n in range(6)]
    async with asyncio.timeout(60), queue.worker(concurrency=SLOTS, processes=1) as worker:
        assert [await other.result(timeout=30) for other in others] == list(range(6))
        await worker.run_until_idle()
        await works_on(queue, worker)
    return await bad_job.job()


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("step", REFUSALS)
async def test_a_refusal_of_the_database_fails_one_attempt(
    queue: Queue, run: Run, step: str
) -> None:
    job_type, sql, reason = REFUSALS[step]
    register(queue, run)
    await queue.store.fetch(sql)
    job = await run_among_others(queue, job_type)
    assert (job.status, job.last_error) == (State.FAILED, reason)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("step", ["rule", "backoff", "wait"])
async def test_rules_that_raise_fail_one_attempt(
    queue: Queue, run: Run, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A child uses the rules of its module, so it needs other functions."""
    hostile_jobs.register(queue, run)
    rules: dict[str, Any] = hostile_jobs.BAD_RULES[step]
    if run == "process":
        queue.job(name="bad", run=run, **rules)(hostile_jobs.JOBS_WITH_BAD_RULES[step].function)
    else:
        function = hostile_jobs.BAD_JOBS[run == "async"]["bad"]
        queue.job(name="bad", run=run, **rules)(function)
    job = await run_among_others(queue, "bad")
    assert job.status is State.FAILED
    assert "the outcome could not be decided" in job.last_error
    assert "of the bad job" in job.errors[0]["traceback"], "the error of the handler is kept too"
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert any(f"job.fail id={job.id} " in line for line in logged), "the failure is logged"


@pytest.mark.parametrize("run", RUNS)
async def test_an_error_that_cannot_be_printed_is_logged_as_a_failure(
    queue: Queue, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    hostile_jobs.register(queue, run)
    bad_job = await queue.enqueue("misbehave", {"attack": "str raises"})
    async with asyncio.timeout(60), queue.worker(concurrency=SLOTS, processes=1) as worker:
        await worker.run_until_idle()
        await works_on(queue, worker)
    job = await bad_job.job()
    assert job.status is State.FAILED
    assert job.last_error == "StrRaises: <StrRaises that cannot be printed>"
    assert f"job.fail id={job.id} " in caplog.text


@pytest.mark.parametrize("run", ["async", "thread"])
async def test_an_error_that_cannot_be_described_fails_one_attempt(
    queue: Queue, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(queue, run)
    break_descriptions(monkeypatch)
    job = await run_among_others(queue, "bad")
    assert job.status is State.FAILED
    assert job.last_error == "the outcome could not be decided: RuntimeError: broken on purpose"


@pytest.mark.parametrize("run", RUNS)
async def test_a_log_that_raises_changes_nothing(queue: Queue, run: Run) -> None:
    register(queue, run, max_attempts=1)
    log_filter = RaisingFilter()
    loggers = [logging.getLogger(f"howdah.{name}") for name in ("settle", "run")]
    for logger in loggers:
        logger.addFilter(log_filter)
    try:
        job = await run_among_others(queue, "bad")
    finally:
        for logger in loggers:
            logger.removeFilter(log_filter)
    assert (job.status, job.last_error) == (State.FAILED, "OSError: of the bad job")


@pytest.mark.parametrize("run", RUNS)
async def test_measures_that_raise_change_nothing(
    queue: Queue, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(queue, run, max_attempts=1)
    break_measures(monkeypatch)
    job = await run_among_others(queue, "bad")
    assert (job.status, job.last_error) == (State.FAILED, "OSError: of the bad job")


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("at", ["before", "end", "after"])
async def test_tracing_that_raises_costs_one_attempt_at_most(
    dsn: str, queue: Queue, run: Run, at: str
) -> None:
    """`queue` only enqueues and is not traced; the worker belongs to `traced`."""
    async with Queue(dsn) as traced:
        register(traced, run, max_attempts=1)
        bad_job = await queue.enqueue("bad_result", max_attempts=1)
        others = [await queue.enqueue("innocent", {"n": n}) for n in range(6)]
        traced.store.tracing = cast("Any", BrokenTracing(at))
        async with (
            asyncio.timeout(60),
            traced.worker(concurrency=SLOTS, processes=1) as worker,
        ):
            assert [await other.result(timeout=30) for other in others] == list(range(6))
            await works_on(queue, worker)
            await worker.run_until_idle()
        job = await bad_job.job()
    if at == "before":
        assert job.status is State.FAILED
        assert job.last_error == "its tracing broke: RuntimeError: broken on purpose"
    else:
        assert job.status is State.COMPLETED


async def test_an_attempt_that_is_lost_before_it_begins_frees_its_slot(queue: Queue) -> None:
    began: list[str] = []

    @queue.job
    async def work(ctx: JobContext) -> None:
        began.append("work")

    handle = await work.enqueue()
    async with asyncio.timeout(60), queue.worker(concurrency=1) as worker:
        executor = worker._started().executor  # pyright: ignore[reportPrivateUsage]
        start = executor.start

        def start_and_lose(claim: Claim) -> None:
            start(claim)
            if claim.id == handle.id:
                executor.lose({(claim.id, claim.attempt)})

        executor.start = start_and_lose
        other = await work.enqueue()
        await other.result(timeout=20)
        assert worker.free_slots == 1
        await handle.cancel()
    assert began == ["work"], "the lost attempt never began"


async def test_an_answer_about_an_earlier_attempt_does_not_stop_a_later_one(queue: Queue) -> None:
    """The worker was silent, and its job was recovered and claimed again, by the same worker."""

    @queue.job
    async def work(ctx: JobContext) -> None: ...

    async with asyncio.timeout(60), queue.worker(concurrency=1) as worker:
        executor = worker._started().executor  # pyright: ignore[reportPrivateUsage]
        start = executor.start

        def start_and_lose_an_earlier_one(claim: Claim) -> None:
            start(claim)
            executor.lose({(claim.id, claim.attempt - 1)})

        executor.start = start_and_lose_an_earlier_one
        handle = await work.enqueue()
        await handle.result(timeout=20)
        assert (await handle.job()).status is State.COMPLETED
