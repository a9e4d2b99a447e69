"""A worker that cannot write its endings claims no more, and continues when it can."""

from __future__ import annotations

import psycopg
import pytest

from howdah import Queue, State
from tests.support.waiting import eventually

BACKLOG = 100
JOBS = 600


async def test_a_worker_that_cannot_settle_stops_claiming(
    queue: Queue, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howdah.in_hand.BACKLOG", BACKLOG)
    ran: list[int] = []

    @queue.job
    async def quick(n: int) -> None:
        ran.append(n)

    await queue.enqueue_many(quick.draft(n=n) for n in range(JOBS))
    async with queue.worker(batch_size=20, concurrency=10) as worker:
        async with await psycopg.AsyncConnection.connect(dsn) as other:
            await other.execute("lock table howdah.jobs_finished in share mode")
            await eventually(lambda: len(ran) > BACKLOG, "there are more endings than the limit")
            before, pending = -1, 0
            while before < len(ran):
                before = len(ran)
                for _ in range(20):
                    pending = (await queue.counts())["quick"].get(State.PENDING, 0)
            assert pending > JOBS / 2
        await worker.run_until_idle()
    assert sorted(ran) == list(range(JOBS))
    assert (await queue.counts())["quick"][State.COMPLETED] == JOBS
