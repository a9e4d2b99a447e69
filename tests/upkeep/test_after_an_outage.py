"""After an outage nobody is given up for a silence that was the database's, not theirs."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from howdah import Queue, State
from howdah.upkeep import Upkeep
from tests.support.waiting import eventually

LEASE = timedelta(seconds=1)
SILENT = "update howdah.workers set beat_at = beat_at - interval '1 hour' where id = $1"


def upkeep_of(queue: Queue, worker_id: str) -> Upkeep:
    return Upkeep(
        queue.store,
        worker_id,
        every=timedelta(seconds=1),
        stale_after=timedelta(minutes=5),
        silent_after=LEASE,
    )


async def beat(queue: Queue, worker_id: str) -> None:
    await queue.store.fetch("select howdah.beat($1, p_silent_after => $2)", worker_id, LEASE)


async def hold_a_job(queue: Queue, worker_id: str) -> None:
    await queue.enqueue("long")
    await beat(queue, worker_id)
    assert await queue.claim(["long"], worker_id=worker_id)


async def status(queue: Queue) -> State:
    (job,) = await queue.jobs(job_type="long")
    return job.status


async def test_who_was_not_heard_of_late_judges_nobody(queue: Queue) -> None:
    await hold_a_job(queue, "silent")
    await beat(queue, "judge")
    for worker_id in ("silent", "judge"):
        await queue.store.fetch(SILENT, worker_id)
    judge = upkeep_of(queue, "judge")
    await judge.step()
    assert await status(queue) is State.CLAIMED
    await beat(queue, "judge")
    await judge.step()
    assert await status(queue) is State.PENDING


async def test_who_waited_long_for_an_answer_gives_the_others_time(queue: Queue, dsn: str) -> None:
    await hold_a_job(queue, "silent")
    await beat(queue, "judge")
    judge = upkeep_of(queue, "judge")
    async with Queue(dsn) as operator, operator.store.acquire() as holder:
        async with holder.transaction():
            await holder.execute("lock table howdah.finished_counts in access exclusive mode")
            round = asyncio.create_task(judge.step())
            await asyncio.sleep(LEASE.total_seconds())  # the answer takes as long as this
        await round
    await queue.store.fetch(SILENT, "silent")
    await beat(queue, "judge")
    await judge.step()
    assert await status(queue) is State.CLAIMED, "not yet"

    async def given_up() -> bool:
        await beat(queue, "judge")
        await judge.step()
        return await status(queue) is State.PENDING

    await eventually(given_up)
