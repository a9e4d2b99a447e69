"""enqueue_many streams through COPY, all or nothing, and never holds the whole stream in memory."""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Generator
from datetime import UTC, datetime, timedelta
from typing import Any

from howdah import Draft, Queue, State


class Arguments(dict[str, Any]):
    """A dict that can have a finalizer."""


async def test_a_hundred_thousand_jobs_are_enqueued_with_few_in_memory(queue: Queue) -> None:
    @queue.job
    async def mail(to: int) -> None: ...

    alive, peak = 0, 0

    def count_freed() -> None:
        nonlocal alive
        alive -= 1

    def stream() -> Generator[Arguments]:
        nonlocal alive, peak
        for n in range(100_000):
            arguments = Arguments(to=n)
            weakref.finalize(arguments, count_freed)
            alive += 1
            peak = max(peak, alive)
            yield arguments

    assert await mail.enqueue_many(stream()) == 100_000
    assert await queue.counts() == {"mail": {State.PENDING: 100_000}}
    assert peak < 100
    first = await queue.claim(["mail"], 5, worker_id="mine")
    assert [job.data["to"] for job in first] == [0, 1, 2, 3, 4], "the order of the stream"


async def test_an_async_stream_of_drafts_of_several_types_keeps_their_options(queue: Queue) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    drafts = [
        queue.draft("mail", {"n": 1}, priority=7, max_attempts=9),
        queue.draft("fax", {"n": 2}, delay=timedelta(hours=2)),
        queue.draft("fax", {"n": 3}, run_at=soon),
    ]

    async def stream() -> AsyncGenerator[Draft]:
        for draft in drafts:
            yield draft

    assert await queue.enqueue_many(stream()) == 3
    jobs = {job.data["n"]: job for job in await queue.jobs()}
    assert [jobs[n].id for n in (1, 2, 3)] == [draft.id for draft in drafts]
    assert (jobs[1].priority, jobs[1].max_attempts, jobs[1].run_at) == (7, 9, None)
    assert jobs[3].run_at == soon
    claimed = await queue.claim(["mail", "fax"], worker_id="mine")
    assert [job.data["n"] for job in claimed] == [1], "scheduled jobs are not in line"


async def test_an_idle_worker_is_woken_by_a_stream(queue: Queue) -> None:
    @queue.job
    async def mail(to: int) -> int:
        return to

    async with queue.worker(poll=timedelta(hours=1)) as worker:
        await worker.run_until_idle()
        draft = mail.draft(to=5)
        await mail.enqueue_many([draft])
        assert await queue.handle(draft.id).result(timeout=10) == 5
