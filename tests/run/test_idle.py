"""`run_until_idle` returns when nothing is left; jobs that are handed back meanwhile count."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from howdah import Backoff, Queue, Rate
from howdah.outcomes import Ending
from howdah.settle import Settler
from howdah.states import State, Verb
from howdah.store import claim as store_claim
from howdah.upkeep.upkeep import Upkeep
from tests.support.waiting import eventually


async def test_a_job_retried_while_the_last_endings_are_written_is_run_too(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The retry is written only after the worker has found no job and waits."""
    write = Settler._write  # pyright: ignore[reportPrivateUsage]

    async def late(self: Settler, verb: Verb, endings: Sequence[Ending]) -> dict[Any, Any]:
        await asyncio.sleep(0.2)
        return await write(self, verb, endings)

    monkeypatch.setattr(Settler, "_write", late)
    attempts: list[int] = []

    @queue.job(max_attempts=2, backoff=Backoff(first=timedelta()))
    async def twice() -> None:
        attempts.append(1)
        if len(attempts) == 1:
            raise OSError("not yet")

    handle = await twice.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert (await handle.job()).status is State.COMPLETED


async def test_a_job_retried_between_a_claim_and_its_answer_is_run_too(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim found no job; before its answer is read, the retry is written."""
    started, may_fail = asyncio.Event(), asyncio.Event()
    attempts: list[int] = []
    real = store_claim.claim

    @queue.job(max_attempts=2, backoff=Backoff(first=timedelta()))
    async def twice() -> None:
        attempts.append(1)
        started.set()
        if len(attempts) == 1:
            await may_fail.wait()
            raise OSError("not yet")

    handle = await twice.enqueue()

    async def in_line_again() -> bool:
        job = await handle.job()
        return job.status is State.PENDING and job.attempts == 1

    async def answered_late(*args: Any) -> list[Any]:
        claims = await real(*args)
        if started.is_set() and not may_fail.is_set() and not claims:
            may_fail.set()
            await eventually(in_line_again)
        return claims

    monkeypatch.setattr(store_claim, "claim", answered_late)
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert (await handle.job()).status is State.COMPLETED


async def test_a_claim_that_began_before_the_call_does_not_count(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is enqueued during a claim, without a notification, is run too."""
    claiming, may_end = asyncio.Event(), asyncio.Event()
    may_end.set()
    real = store_claim.claim

    async def slow(*args: Any) -> list[Any]:
        claims = await real(*args)
        claiming.set()
        await may_end.wait()
        return claims

    monkeypatch.setattr(store_claim, "claim", slow)

    @queue.job
    async def mail() -> None: ...

    async with queue.worker(poll=timedelta(hours=1)) as worker:
        await worker.run_until_idle()
        may_end.clear()
        claiming.clear()
        worker._started().claim_loop.wake()  # pyright: ignore[reportPrivateUsage]
        await claiming.wait()
        handle = await mail.enqueue()
        idle = asyncio.create_task(worker.run_until_idle())
        await asyncio.sleep(0)
        may_end.set()
        await idle
        assert (await handle.job()).status is State.COMPLETED


@pytest.mark.parametrize("limit", [False, True])
async def test_a_job_that_waits_for_a_free_slot_is_run_too(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, limit: bool
) -> None:
    """The worker's upkeep, which admits it at other times, has not done so yet."""
    begun: list[int] = []

    async def never(self: Upkeep) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Upkeep, "run", never)
    queue.limit("api", at_once=2)

    @queue.job(key=None if limit else "n", limit="api" if limit else None)
    async def step(n: int) -> None:
        begun.append(n)

    async with queue.worker() as worker:
        await step.enqueue_many(step.draft(n=n % 5) for n in range(20))
        await worker.run_until_idle()
    assert len(begun) == 20


async def test_a_job_that_waits_for_a_rate_is_not_waited_for(queue: Queue) -> None:
    queue.limit("api", rate=Rate(1, per=timedelta(days=1), burst=2))

    @queue.job(limit="api")
    async def step() -> None: ...

    async with queue.worker() as worker:
        await step.enqueue_many(step.draft() for _ in range(5))
        await worker.run_until_idle()
    assert await queue.counts() == {"step": {State.COMPLETED: 2, State.PENDING: 3}}
