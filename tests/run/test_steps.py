"""Every step between a handler's end and its settlement may break: one attempt pays at most.

Each step is made to raise for one job, in each way to run. What happens in the worker is broken
there; what the handler's own rules and values decide is broken by them; the database refuses by
constraints of its own.
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


def breaking(function: Callable[..., Any], is_it: Callable[..., bool]) -> Callable[..., Any]:
    """Return a function that raises where it is about the culprit."""

    def broken(*args: Any, **kwargs: Any) -> Any:
        if is_it(*args, **kwargs):
            raise BROKEN
        return function(*args, **kwargs)

    return broken


class Rude(logging.Filter):
    """A filter that raises for every line about the culprit."""

    def filter(self, record: logging.LogRecord) -> bool:
        if "type=bad" in record.getMessage():
            raise BROKEN
        return True


class BrokenTracing:
    """Tracing that breaks at the culprit, before its attempt or at its end."""

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


def measures_break(patch: pytest.MonkeyPatch) -> None:
    def is_it(
        self: Measures, verb: Verb, endings: Sequence[Ending], moved: dict[UUID, Any], at: float
    ) -> bool:
        return any(ending.claim.job_type.startswith("bad") for ending in endings)

    patch.setattr(Measures, "settled", breaking(Measures.settled, is_it))


def describing_breaks(patch: pytest.MonkeyPatch) -> None:
    def is_it(error: BaseException) -> bool:
        return "of the culprit" in str(error)

    for name in ("describe", "_traceback_of"):
        patch.setattr(outcome_of, name, breaking(getattr(outcome_of, name), is_it))


def register(queue: Queue, run: Run, **rules: Any) -> None:
    """Register `bad`, which raises, `bad_result` and `bad_event`, and `innocent`."""
    hostile_jobs.register(queue, run)
    one: Any = {"run": run, **rules}
    for name, function in hostile_jobs.CULPRITS[run == "async"].items():
        queue.job(name=name, **one)(function)


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
        "alter table howdah.job_events add constraint no_event check (kind <> 'of the culprit')",
        "its event 'of the culprit' could not be stored: refused: no event",
    ),
}


async def settled_beside_others(queue: Queue, job_type: str) -> Any:
    """Run the culprit among others; fails unless they complete and the worker is well."""
    culprit = await queue.enqueue(job_type)
    others = [await queue.enqueue("innocent", {"n": n}) for n in range(6)]
    async with asyncio.timeout(60), queue.worker(concurrency=SLOTS, processes=1) as worker:
        assert [await one.result(timeout=30) for one in others] == list(range(6))
        await worker.run_until_idle()
        await works_on(queue, worker)
    return await culprit.job()


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("step", REFUSALS)
async def test_what_the_database_refuses_fails_one_attempt(
    queue: Queue, run: Run, step: str
) -> None:
    job_type, sql, reason = REFUSALS[step]
    register(queue, run)
    await queue.store.fetch(sql)
    job = await settled_beside_others(queue, job_type)
    assert (job.status, job.last_error) == (State.FAILED, reason)


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("step", ["rule", "backoff", "wait"])
async def test_rules_that_raise_fail_one_attempt(
    queue: Queue, run: Run, step: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In a child the rules are those of its module, so a child has functions of their own."""
    hostile_jobs.register(queue, run)
    rules: dict[str, Any] = hostile_jobs.BAD_RULES[step]
    if run == "process":
        queue.job(name="bad", run=run, **rules)(hostile_jobs.RULED[step].function)
    else:
        function = hostile_jobs.CULPRITS[run == "async"]["bad"]
        queue.job(name="bad", run=run, **rules)(function)
    job = await settled_beside_others(queue, "bad")
    assert job.status is State.FAILED
    assert "the outcome could not be decided" in job.last_error
    assert "of the culprit" in job.errors[0]["traceback"], "what the handler raised is kept, too"
    logged = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert any(f"job.fail id={job.id} " in line for line in logged), "and the log says so"


@pytest.mark.parametrize("run", RUNS)
async def test_an_error_that_cannot_be_printed_is_a_failure_that_is_logged(
    queue: Queue, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    hostile_jobs.register(queue, run)
    culprit = await queue.enqueue("misbehave", {"deed": "str raises"})
    async with asyncio.timeout(60), queue.worker(concurrency=SLOTS, processes=1) as worker:
        await worker.run_until_idle()
        await works_on(queue, worker)
    job = await culprit.job()
    assert job.status is State.FAILED
    assert job.last_error == "StrRaises: <StrRaises that cannot be printed>"
    assert f"job.fail id={job.id} " in caplog.text


@pytest.mark.parametrize("run", ["async", "thread"])
async def test_an_error_that_cannot_be_described_fails_one_attempt(
    queue: Queue, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(queue, run)
    describing_breaks(monkeypatch)
    job = await settled_beside_others(queue, "bad")
    assert job.status is State.FAILED
    assert job.last_error == "the outcome could not be decided: RuntimeError: broken on purpose"


@pytest.mark.parametrize("run", RUNS)
async def test_a_log_that_raises_changes_nothing(queue: Queue, run: Run) -> None:
    register(queue, run, max_attempts=1)
    rude, loggers = Rude(), [logging.getLogger(f"howdah.{name}") for name in ("settle", "run")]
    for logger in loggers:
        logger.addFilter(rude)
    try:
        job = await settled_beside_others(queue, "bad")
    finally:
        for logger in loggers:
            logger.removeFilter(rude)
    assert (job.status, job.last_error) == (State.FAILED, "OSError: of the culprit")


@pytest.mark.parametrize("run", RUNS)
async def test_measures_that_raise_change_nothing(
    queue: Queue, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(queue, run, max_attempts=1)
    measures_break(monkeypatch)
    job = await settled_beside_others(queue, "bad")
    assert (job.status, job.last_error) == (State.FAILED, "OSError: of the culprit")


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("at", ["before", "end", "after"])
async def test_tracing_that_raises_costs_one_attempt_at_most(
    dsn: str, queue: Queue, run: Run, at: str
) -> None:
    """`queue` enqueues, and is not traced; the other one works."""
    async with Queue(dsn) as traced:
        register(traced, run, max_attempts=1)
        culprit = await queue.enqueue("bad_result", max_attempts=1)
        others = [await queue.enqueue("innocent", {"n": n}) for n in range(6)]
        traced.store.tracing = cast("Any", BrokenTracing(at))
        async with (
            asyncio.timeout(60),
            traced.worker(concurrency=SLOTS, processes=1) as worker,
        ):
            assert [await one.result(timeout=30) for one in others] == list(range(6))
            await works_on(queue, worker)
            await worker.run_until_idle()
        job = await culprit.job()
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
        attempts = worker._attempts  # pyright: ignore[reportPrivateUsage]
        start = attempts.start

        def start_and_lose(claim: Claim) -> None:
            start(claim)
            if claim.id == handle.id:
                attempts.lose({claim.id})

        attempts.start = start_and_lose
        other = await work.enqueue()
        await other.result(timeout=20)
        assert worker.free_slots == 1
        await handle.cancel()
    assert began == ["work"], "the lost one never began"
