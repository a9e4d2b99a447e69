"""The low level, for those who write their own loop: claim, complete, fail, recover."""

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


async def test_a_failed_attempt_is_retried_until_none_is_left(queue: Queue) -> None:
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


async def test_many_are_settled_at_once_and_only_what_was_ours_comes_back(queue: Queue) -> None:
    await queue.enqueue_many(queue.draft("mail") for _ in range(20))
    mine = await queue.claim(["mail"], 15, worker_id="mine")
    theirs = await queue.claim(["mail"], 5, worker_id="theirs")
    made_up = Lease(uuid4(), "mine", 1)
    moved = await queue.complete_many([*mine[:10], made_up])
    assert moved == {job.id for job in mine[:10]}
    assert await queue.release(mine[10:]) == {job.id for job in mine[10:]}
    assert set((await queue.fail_many(theirs, ["x"] * 5)).values()) == {State.PENDING}


@pytest.mark.parametrize("how", ["foreign", "old", "made up", "settled before"])
async def test_a_lease_that_is_not_ours_settles_nothing(queue: Queue, how: str) -> None:
    await queue.enqueue("mail")
    (job,) = await queue.claim(["mail"], worker_id="mine")
    if how == "settled before":
        await queue.complete(job)
    lease = {
        "foreign": Lease(job.id, "somebody else", 1),
        "old": Lease(job.id, "mine", 0),
        "made up": Lease(uuid4(), "mine", 1),
        "settled before": job.lease,
    }[how]
    before = await queue.get(job.id)
    with pytest.raises(StaleLease, match="no longer yours"):
        await queue.complete(lease)
    with pytest.raises(StaleLease, match="nothing was changed"):
        await queue.fail(lease, "late")
    assert await queue.get(job.id) == before


async def test_recovery_takes_from_workers_that_never_beat_by_age_alone(queue: Queue) -> None:
    await queue.enqueue("mail")
    (job,) = await queue.claim(["mail"], worker_id="mine")
    assert await queue.recover_stale_jobs(timedelta(minutes=5)) == []
    await queue.store.fetch("update howdah.jobs set claimed_at = now() - interval '6 minutes'")
    (recovered,) = await queue.recover_stale_jobs(timedelta(minutes=5))
    assert recovered == (job.id, State.PENDING, "mine")


@pytest.mark.parametrize("size", [0, -1, 10_001])
async def test_a_batch_size_that_makes_no_sense_is_refused(queue: Queue, size: int) -> None:
    with pytest.raises(BadInput, match=f"batch_size lies between 1 and 10000, not {size}"):
        await queue.claim(["mail"], size, worker_id="mine")


async def test_a_worker_needs_a_name(queue: Queue) -> None:
    with pytest.raises(BadInput, match="worker_id is text of 1 to 200 characters"):
        await queue.claim(["mail"], worker_id="")
