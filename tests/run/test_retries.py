"""After a failed attempt there is another one later, or the job ends."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from howdah import (
    Backoff,
    BadInput,
    Cancel,
    Fail,
    JobCancelled,
    JobContext,
    JobFailed,
    Queue,
    Retry,
    Snooze,
    State,
)

AT_ONCE = Backoff(first=timedelta(0))


async def test_a_job_that_fails_is_tried_again_until_it_succeeds(queue: Queue) -> None:
    @queue.job(max_attempts=3, backoff=AT_ONCE)
    async def flaky(ctx: JobContext) -> int:
        if ctx.attempt < 3:
            raise ConnectionError(f"attempt {ctx.attempt}")
        return ctx.attempt

    handle = await flaky.enqueue()
    async with queue.worker():
        assert await handle.result(timeout=10) == 3
    job = await handle.job()
    assert [(e["attempt"], e["error"]) for e in job.errors] == [
        (1, "ConnectionError: attempt 1"),
        (2, "ConnectionError: attempt 2"),
    ]
    traceback: str = job.errors[0]["traceback"]
    assert "raise ConnectionError" in traceback
    assert traceback.count('File "') == 1, "the traceback begins at the handler, not in howdah"


async def test_a_job_that_failed_its_last_attempt_keeps_its_data_and_error(queue: Queue) -> None:
    @queue.job(max_attempts=2, backoff=AT_ONCE)
    async def hopeless(ctx: JobContext, n: int) -> None:
        ctx.progress(30, "counting")
        raise ValueError("no good")

    handle = await hopeless.enqueue(n=7)
    async with queue.worker():
        with pytest.raises(JobFailed, match="failed at attempt 2: ValueError: no good"):
            await handle.result(timeout=10)
    job = await handle.job()
    assert (job.status, job.attempts, job.data) == (State.FAILED, 2, {"n": 7})
    assert (job.progress, job.current_stage) == (30, "counting")
    assert job.last_error == "ValueError: no good"
    assert await queue.jobs(status="failed") == [job]


async def test_a_failed_job_can_be_requeued_and_runs_once_more(queue: Queue) -> None:
    fixed = False

    @queue.job(max_attempts=1)
    async def broken() -> str:
        if not fixed:
            raise ValueError("bug")
        return "fine"

    handle = await broken.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed):
            await handle.result(timeout=10)
        assert not await handle.cancel(), "an ended job cannot be cancelled"
        fixed = True
        assert await handle.requeue()
        assert await handle.result(timeout=10) == "fine"
    assert (await handle.job()).attempts == 2


async def test_a_retry_without_a_delay_waits_for_the_backoff(queue: Queue) -> None:
    @queue.job(backoff=Backoff(first=timedelta(hours=1), jitter=0))
    async def later() -> None:
        raise ValueError("not today")

    handle = await later.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    job = await handle.job()
    assert job.status is State.PENDING
    assert job.run_at is not None
    waits = job.run_at - job.created_at
    assert timedelta(hours=1) <= waits < timedelta(hours=1, minutes=1)


async def test_fail_on_fails_at_once_and_retry_on_limits_the_retries(
    queue: Queue,
) -> None:
    @queue.job(max_attempts=5, backoff=AT_ONCE, retry_on=OSError, fail_on=FileNotFoundError)
    async def picky(ctx: JobContext, kind: str) -> int:
        if ctx.attempt == 1:
            raise {"os": OSError("busy"), "missing": FileNotFoundError("x"), "value": ValueError()}[
                kind
            ]
        return ctx.attempt

    retried = await picky.enqueue(kind="os")
    listed = await picky.enqueue(kind="missing")
    other = await picky.enqueue(kind="value")
    async with queue.worker():
        assert await retried.result(timeout=10) == 2
        for handle in (listed, other):
            with pytest.raises(JobFailed, match="failed at attempt 1"):
                await handle.result(timeout=10)


@pytest.mark.parametrize("how", ["raised", "returned"])
async def test_a_handler_decides_about_its_own_attempt(queue: Queue, how: str) -> None:
    outcomes = {
        "retry": lambda: Retry("again please", after=timedelta(hours=2)),
        "fail": lambda: Fail("cannot be done"),
        "cancel": lambda: Cancel("not needed"),
        "snooze": lambda: Snooze(timedelta(hours=2)),
    }

    @queue.job
    async def decide(outcome: str) -> object:
        if how == "raised":
            raise outcomes[outcome]()
        return outcomes[outcome]()

    handles = {outcome: await decide.enqueue(outcome=outcome) for outcome in outcomes}
    async with queue.worker() as worker:
        await worker.run_until_idle()
        with pytest.raises(JobFailed, match="cannot be done"):
            await handles["fail"].result(timeout=10)
        with pytest.raises(JobCancelled, match="not needed"):
            await handles["cancel"].result(timeout=10)
    retried, snoozed = [await handles[outcome].job() for outcome in ("retry", "snooze")]
    assert (retried.status, retried.attempts, retried.last_error) == (
        State.PENDING,
        1,
        "again please",
    )
    assert (snoozed.status, snoozed.attempts, snoozed.last_error) == (State.PENDING, 0, None)
    for job in (retried, snoozed):
        assert job.run_at is not None
        assert job.run_at - job.created_at >= timedelta(hours=2)


async def test_a_retry_on_the_last_attempt_fails(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def once() -> None:
        raise Retry("once more", after=0)

    handle = await once.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="once more"):
            await handle.result(timeout=10)


async def test_sys_exit_in_a_handler_ends_the_job_and_not_the_worker(queue: Queue) -> None:
    @queue.job
    async def leave() -> None:
        raise SystemExit(3)

    @queue.job
    async def stay() -> str:
        return "still here"

    left = await leave.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="SystemExit: 3"):
            await left.result(timeout=10)
        assert await (await stay.enqueue()).result(timeout=10) == "still here"


async def test_a_cancelled_future_inside_a_handler_is_a_failure(
    queue: Queue,
) -> None:
    @queue.job(max_attempts=1)
    async def tangled() -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.cancel()
        await future

    handle = await tangled.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="something inside the handler was cancelled"):
            await handle.result(timeout=10)


def test_backoff_doubles_is_capped_and_spread() -> None:
    exact = Backoff(first=timedelta(seconds=1), cap=timedelta(minutes=1), jitter=0)
    assert [exact.after(n).total_seconds() for n in (1, 2, 3, 7, 1000)] == [1, 2, 4, 60, 60]
    spread = {Backoff(jitter=0.5).after(3) for _ in range(50)}
    assert len(spread) > 1
    assert all(timedelta(seconds=4) <= wait <= timedelta(seconds=12) for wait in spread)


def test_a_negative_wait_is_refused() -> None:
    with pytest.raises(BadInput, match="is negative"):
        Retry(after=-1)
