"""What stands before the marks of a slow line is found, and looking for it holds nothing up."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from howdah import Queue
from howdah.claim import claim
from howdah.job import Claim
from howdah.store import Store
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def every_look_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "SLOW", -1.0)
    monkeypatch.setattr(claim, "FRESH", 0.0)


async def enqueue_late(queue: Queue, name: str) -> None:
    """Insert a job as a transaction does that began an hour ago and commits now."""
    await queue.store.fetch(
        "insert into howdah.jobs (job_type, data, created_at) "
        "values ('mail', $1, now() - interval '1 hour')",
        f'{{"name": "{name}"}}',
    )


async def test_a_job_that_was_committed_late_is_found_behind_the_marks(queue: Queue) -> None:
    done: list[str] = []

    @queue.job
    async def mail(name: str) -> None:
        done.append(name)

    async with queue.worker() as worker:
        for n in range(3):
            await mail.enqueue(name=f"early {n}")
            await eventually(lambda n=n: len(done) == n + 1)
        await enqueue_late(queue, "late")
        await worker.run_until_idle()
        assert done[-1] == "late"


async def test_claims_go_on_while_a_look_back_takes_long(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    looking, go_on = asyncio.Event(), asyncio.Event()

    @queue.job
    async def mail(name: str) -> None:
        done.append(name)

    async def slow_look_back(store: Store, worker_id: str, n: int, line: claim.Line) -> list[Claim]:
        looking.set()
        await go_on.wait()
        return await claim.look_back(store, worker_id, n, line)

    monkeypatch.setattr("howdah.claim.loop.look_back", slow_look_back)
    async with queue.worker():
        await mail.enqueue(name="first")
        await looking.wait()
        await enqueue_late(queue, "late")
        await mail.enqueue(name="meanwhile")
        await eventually(lambda: "meanwhile" in done)
        assert "late" not in done
        go_on.set()
        await eventually(lambda: "late" in done)


async def test_an_idle_worker_looks_back_however_seldom_it_polls(queue: Queue) -> None:
    """Else nobody would ever learn that nothing is left to do."""

    @queue.job
    async def mail(name: str) -> None: ...

    async with queue.worker(poll=timedelta(hours=1)) as worker, asyncio.timeout(20):
        await worker.run_until_idle()
