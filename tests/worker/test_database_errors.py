"""A database error about one job fails that job; one about all jobs ends the worker.

No attempt is lost because of a dropped function: an ending that could not be written is recovered
by the next worker, and a job that had not begun is released.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from howdah import JobContext, Queue, State
from howdah.errors import SchemaMissing
from tests.support.waiting import eventually

SHORT = timedelta(milliseconds=500)
MANY = 30


async def drop(queue: Queue, name: str) -> None:
    """Drop every function of this name, with its dependents."""
    await queue.store.fetch(
        "do $$ declare f regprocedure; begin "
        f"for f in select oid from pg_proc where pronamespace = 'howdah'::regnamespace "
        f"and proname = '{name}' loop execute format('drop function %s cascade', f); end loop; "
        "end $$"
    )


async def test_no_job_fails_because_a_function_was_dropped(queue: Queue, dsn: str) -> None:
    may_end, runs = asyncio.Event(), list[tuple[int, int]]()

    @queue.job(max_attempts=2)
    async def mail(ctx: JobContext, n: int) -> int:
        runs.append((n, ctx.attempt))
        if ctx.attempt == 1:
            await may_end.wait()
        return n

    await mail.enqueue_many(mail.draft(n=n) for n in range(MANY))
    worker = queue.worker(concurrency=5, silent_after=SHORT)
    await worker.start()
    await eventually(lambda: len(runs) == 5, "five jobs run")
    async with Queue(dsn) as operator:
        await drop(operator, "complete")
        may_end.set()
        async with asyncio.timeout(30):
            await worker.stopping()
        with pytest.raises(SchemaMissing, match=r"complete.* does not exist"):
            await worker.__aexit__(None, None, None)
        jobs = await operator.jobs(job_type="mail", limit=100)
        assert not [job for job in jobs if job.status.finished], "no job has ended"
        assert not any(job.errors for job in jobs)
        begun = {n for n, _ in runs}
        assert {job.data["n"]: job.attempts for job in jobs if job.data["n"] not in begun} == {
            n: 0 for n in range(MANY) if n not in begun
        }, "jobs that had not begun lost no attempt"
        assert await operator.install() is True, "an install restores the function"
    again = Queue(dsn)
    again.job(name="mail", max_attempts=2)(mail.function)
    async with again, again.worker(upkeep_every=timedelta(milliseconds=50)):
        await eventually(lambda: all_completed(again), "all jobs are completed")
    assert {n for n, _ in runs} == set(range(MANY))
    await queue.close()


async def all_completed(queue: Queue) -> bool:
    return (await queue.counts())["mail"] == {State.COMPLETED: MANY}


async def test_endings_of_other_kinds_are_still_written(queue: Queue, dsn: str) -> None:
    """Failures and releases do not need the dropped function."""
    may_end = asyncio.Event()

    @queue.job(max_attempts=1)
    async def good() -> None:
        await may_end.wait()

    @queue.job(max_attempts=1)
    async def bad() -> None:
        await may_end.wait()
        raise ValueError("by itself")

    handles = [await good.enqueue(), await bad.enqueue()]
    worker = queue.worker(silent_after=SHORT)
    await worker.start()

    async def both_run() -> bool:
        return [await handle.status() for handle in handles] == [State.RUNNING] * 2

    await eventually(both_run, "both jobs run")
    async with Queue(dsn) as operator:
        await drop(operator, "complete")
        may_end.set()
        async with asyncio.timeout(30):
            await worker.stopping()
        with pytest.raises(SchemaMissing):
            await worker.__aexit__(None, None, None)
        ended = await operator.get(handles[1].id)
        assert (ended.status, ended.last_error) == (State.FAILED, "ValueError: by itself")
        assert not (await operator.get(handles[0].id)).status.finished
    await queue.close()


async def test_a_refused_result_fails_only_its_own_job(queue: Queue) -> None:
    """The worker and the other jobs continue."""

    @queue.job(max_attempts=1)
    async def text_of_length(n: int) -> str:
        return "x" * n

    await queue.store.fetch(
        "alter table howdah.jobs add constraint results_are_short "
        "check (length(result::text) < 1000) not valid"
    )
    handles = [await text_of_length.enqueue(n=n) for n in (1, 2000, 2)]
    async with queue.worker() as worker:
        await worker.run_until_idle()
        jobs = [await handle.job() for handle in handles]
    assert [job.status for job in jobs] == [State.COMPLETED, State.FAILED, State.COMPLETED]
    assert "results are short" in (jobs[1].last_error or "")
