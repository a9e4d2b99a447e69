"""A worker whose endings cannot be written down claims no more, and goes on once they can."""

from __future__ import annotations

import psycopg

from howdah import Queue, State
from howdah.settle import BACKLOG
from tests.support.waiting import eventually

JOBS = 5 * BACKLOG


async def test_a_worker_that_cannot_settle_claims_no_more(queue: Queue, dsn: str) -> None:
    ran: list[int] = []

    @queue.job
    async def quick(n: int) -> None:
        ran.append(n)

    await queue.enqueue_many(quick.draft(n=n) for n in range(JOBS))
    async with queue.worker(batch_size=100) as worker:
        async with await psycopg.AsyncConnection.connect(dsn) as other:
            await other.execute("lock table howdah.jobs_finished in share mode")
            await eventually(lambda: len(ran) > BACKLOG, "endings pile up")
            before, pending = -1, 0
            while before < len(ran):
                before = len(ran)
                for _ in range(50):
                    pending = (await queue.counts())["quick"].get(State.PENDING, 0)
            assert pending > JOBS / 2
        await worker.run_until_idle()
    assert sorted(ran) == list(range(JOBS))
    assert (await queue.counts())["quick"][State.COMPLETED] == JOBS
