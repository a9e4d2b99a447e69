"""Reading a queue: pages of jobs, counts, single jobs and waits."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from howdah import BadInput, JobNotFound, Queue, State


async def test_pages_follow_each_other_without_gap_or_repeat(queue: Queue) -> None:
    await queue.enqueue_many(queue.draft("mail", {"n": n}) for n in range(55))
    seen: list[int] = []
    before: UUID | None = None
    while page := await queue.jobs(limit=10, before=before):
        seen += [job.data["n"] for job in page]
        before = page[-1].id
    assert seen == list(reversed(range(55)))


async def test_filters_narrow_by_state_type_and_worker(queue: Queue) -> None:
    await queue.enqueue_many(queue.draft(t) for t in ("mail", "mail", "mail", "fax"))
    first, second = await queue.claim(["mail"], 2, worker_id="mine")
    await queue.complete(first)
    await queue.fail(second, "no", retry=False)
    assert [j.id for j in await queue.jobs(status="completed")] == [first.id]
    assert [j.id for j in await queue.jobs(status=["failed", "cancelled"])] == [second.id]
    assert {j.job_type for j in await queue.jobs(status=State.PENDING)} == {"mail", "fax"}
    assert [j.job_type for j in await queue.jobs(job_type="fax")] == ["fax"]
    assert len(await queue.jobs(worker_id="mine")) == 2


async def test_counts_are_exact_after_every_move(queue: Queue) -> None:
    await queue.enqueue_many(queue.draft("mail") for _ in range(6))
    jobs = await queue.claim(["mail"], 5, worker_id="mine")
    await queue.complete_many(jobs[:2])
    await queue.fail(jobs[2], "no", retry=False)
    await queue.cancel([jobs[3].id])
    assert (await queue.counts())["mail"] == {
        State.PENDING: 1,
        State.CLAIMED: 1,
        State.COMPLETED: 2,
        State.FAILED: 1,
        State.CANCELLED: 1,
    }
    await queue.requeue([jobs[2].id, jobs[3].id])
    assert (await queue.counts())["mail"] == {
        State.PENDING: 3,
        State.CLAIMED: 1,
        State.COMPLETED: 2,
    }


async def test_a_pruned_job_raises_job_not_found(queue: Queue) -> None:
    handle = await queue.enqueue("mail")
    (job,) = await queue.claim(["mail"], worker_id="mine")
    await queue.complete(job)
    assert await queue.prune(timedelta(0)) == [], "the day of today is not pruned"
    await queue.store.fetch("update howdah.jobs set finished_on = finished_on - 30")
    await queue.prune(timedelta(days=7))
    for call in (handle.job(), handle.result(timeout=10), handle.status()):
        with pytest.raises(JobNotFound, match="pruned after its retention"):
            await call
    assert not await handle.cancel()
    assert not await handle.requeue()


async def test_an_unknown_id_is_not_found(queue: Queue) -> None:
    with pytest.raises(JobNotFound):
        await queue.get(uuid4())
    with pytest.raises(BadInput, match="a job id must be a UUID, not 'seven'"):
        await queue.get("seven")


@pytest.mark.parametrize("limit", [0, -5, 10_001])
async def test_a_page_size_out_of_range_is_refused(queue: Queue, limit: int) -> None:
    with pytest.raises(BadInput, match="limit must be between 1 and 10000"):
        await queue.jobs(limit=limit)


async def test_an_unknown_status_is_refused_with_the_list_of_states(queue: Queue) -> None:
    with pytest.raises(BadInput, match="status must be one of pending, claimed, running"):
        await queue.jobs(status="exploded")


async def test_a_timed_out_wait_does_not_change_the_job(queue: Queue) -> None:
    handle = await queue.enqueue("mail")
    with pytest.raises(TimeoutError):
        await handle.result(timeout=0.01)
    assert await handle.status() is State.PENDING


async def test_a_thousand_waits_share_one_connection(queue: Queue) -> None:
    @queue.job
    async def echo(n: int) -> int:
        return n

    drafts = [echo.draft(n=n) for n in range(1000)]
    handles = [queue.handle(draft.id) for draft in drafts]
    await queue.enqueue_many(drafts)
    waits = [asyncio.create_task(handle.result(timeout=30)) for handle in handles]
    async with queue.worker():
        assert await asyncio.gather(*waits) == list(range(1000))
    rows = await queue.store.fetch(
        "select count(*) from pg_stat_activity where datname = current_database()"
    )
    assert rows[0][0] <= 10
