"""A rescan finds the jobs that the marks of a slow line skip, and does not delay other claims."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from howdah import Queue
from howdah.claim import claim, line
from howdah.job import Claim
from howdah.store import Store
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def every_scan_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "SLOW", -1.0)
    monkeypatch.setattr(line, "OVERLAPS", (0.0, 0.0))


async def enqueue_late(queue: Queue, name: str) -> None:
    """Insert a job as a transaction does that began an hour ago and commits now."""
    await queue.store.fetch(
        "insert into howdah.jobs (job_type, data, created_at) "
        "values ('mail', $1, now() - interval '1 hour')",
        f'{{"name": "{name}"}}',
    )


async def test_a_rescan_finds_a_job_that_was_committed_late(queue: Queue) -> None:
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


async def test_claims_continue_during_a_slow_rescan(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    scanning, may_end = asyncio.Event(), asyncio.Event()

    @queue.job
    async def mail(name: str) -> None:
        done.append(name)

    async def slow_rescan(store: Store, worker_id: str, n: int, of: line.Line) -> list[Claim]:
        scanning.set()
        await may_end.wait()
        return await claim.claim_rescan(store, worker_id, n, of)

    monkeypatch.setattr("howdah.claim.loop.claim_rescan", slow_rescan)
    async with queue.worker():
        await mail.enqueue(name="first")
        await scanning.wait()
        await enqueue_late(queue, "late")
        await mail.enqueue(name="meanwhile")
        await eventually(lambda: "meanwhile" in done)
        assert "late" not in done
        may_end.set()
        await eventually(lambda: "late" in done)


async def test_an_idle_worker_rescans_even_if_it_polls_rarely(queue: Queue) -> None:
    """Otherwise `run_until_idle` would never return."""

    @queue.job
    async def mail(name: str) -> None: ...

    async with queue.worker(poll=timedelta(hours=1)) as worker, asyncio.timeout(20):
        await worker.run_until_idle()
