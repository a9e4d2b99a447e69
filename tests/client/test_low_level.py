"""The low-level calls for a caller's own worker loop: claim, complete, fail, recover."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from howdah import BadInput, Lease, Queue, StaleLease, State


async def test_claimed_jobs_are_completed_with_their_lease(queue: Queue) -> None:
    handle = await queue.enqueue("mail", {"to": 1})
    (job,) = await queue.claim(["mail"], worker_id="mine")
    assert (job.id, job.status, job.attempts) == (handle.id, State.CLAIMED, 1)
    await queue.complete(job, {"sent": True})
    assert await handle.result(timeout=10) == {"sent": True}


async def test_a_failed_attempt_is_retried_up_to_max_attempts(queue: Queue) -> None:
    await queue.enqueue("mail", max_attempts=2)
    (first,) = await queue.claim(["mail"], worker_id="mine")
    assert await queue.fail(first, "no route") is State.PENDING
    (second,) = await queue.claim(["mail"], worker_id="mine")
    assert await queue.fail(second, "still no route") is State.FAILED
    assert (await queue.get(second.id)).last_error == "still no route"


async def test_a_failed_attempt_can_be_final(queue: Queue) -> None:
    await queue.enqueue("mail")
    (job,) = await queue.claim(["mail"], worker_id="mine")
    assert await queue.fail(job, "no such address", retry=False) is State.FAILED


async def test_many_jobs_are_settled_at_once_and_only_moved_ids_are_returned(queue: Queue) -> None:
    await queue.enqueue_many(queue.draft("mail") for _ in range(20))
    mine = await queue.claim(["mail"], 15, worker_id="mine")
    other_workers = await queue.claim(["mail"], 5, worker_id="other")
    unknown_job = Lease(uuid4(), "mine", 1)
    moved = await queue.complete_many([*mine[:10], unknown_job])
    assert moved == {job.id for job in mine[:10]}
    assert await queue.release(mine[10:]) == {job.id for job in mine[10:]}
    assert set((await queue.fail_many(other_workers, ["x"] * 5)).values()) == {State.PENDING}


@pytest.mark.parametrize("kind", ["foreign", "old", "unknown job", "settled before"])
async def test_a_wrong_lease_settles_nothing(queue: Queue, kind: str) -> None:
    await queue.enqueue("mail")
    (job,) = await queue.claim(["mail"], worker_id="mine")
    if kind == "settled before":
        await queue.complete(job)
    lease = {
        "foreign": Lease(job.id, "another worker", 1),
        "old": Lease(job.id, "mine", 0),
        "unknown job": Lease(uuid4(), "mine", 1),
        "settled before": job.lease,
    }[kind]
    before = await queue.get(job.id)
    with pytest.raises(StaleLease, match="no longer yours"):
        await queue.complete(lease)
    with pytest.raises(StaleLease, match="Nothing was changed"):
        await queue.fail(lease, "late")
    assert await queue.get(job.id) == before


async def test_jobs_of_workers_that_never_beat_are_recovered_by_age(queue: Queue) -> None:
    await queue.enqueue("mail")
    (job,) = await queue.claim(["mail"], worker_id="mine")
    assert await queue.recover_stale_jobs(timedelta(minutes=5)) == []
    await queue.store.fetch("update howdah.jobs set claimed_at = now() - interval '6 minutes'")
    (recovered,) = await queue.recover_stale_jobs(timedelta(minutes=5))
    assert recovered == (job.id, State.PENDING, "mine")


@pytest.mark.parametrize("size", [0, -1, 10_001])
async def test_a_batch_size_out_of_range_is_refused(queue: Queue, size: int) -> None:
    with pytest.raises(BadInput, match=f"batch_size must be between 1 and 10000, not {size}"):
        await queue.claim(["mail"], size, worker_id="mine")


async def test_an_empty_worker_id_is_refused(queue: Queue) -> None:
    with pytest.raises(BadInput, match="worker_id must be text of 1 to 200 characters"):
        await queue.claim(["mail"], worker_id="")
