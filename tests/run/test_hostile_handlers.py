"""A handler that raises, returns or reports bad values loses at most its own attempt."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from howdah import Queue, State
from howdah.handler import Run
from howdah.worker import Worker
from tests.run import hostile_jobs
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

RUN_MODES: list[tuple[Run, float | None]] = [
    ("async", None),
    ("async", 60),
    ("thread", None),
    ("thread", 60),
    ("process", None),
]
SLOTS = 4


async def works_on(queue: Queue, worker: Worker, slots: int = SLOTS) -> None:
    """Check that the worker works: every slot is free, and the next job completes."""
    await eventually(lambda: worker.free_slots == slots, "all slots are free")
    assert not worker._stopping.is_set()  # pyright: ignore[reportPrivateUsage]
    assert await (await queue.enqueue("innocent", {"n": 7})).result(timeout=20) == 7


@pytest.mark.parametrize(("run", "timeout"), RUN_MODES)
async def test_no_bad_value_of_a_handler_ends_its_worker(
    queue: Queue, run: Run, timeout: float | None
) -> None:
    hostile_jobs.register(queue, run, timeout)
    bad: dict[str, Any] = {}
    good: list[Any] = []
    for n, attack in enumerate([*hostile_jobs.ATTACKS, *hostile_jobs.HARMLESS]):
        bad[attack] = await queue.enqueue("misbehave", {"attack": attack})
        good.append(await queue.enqueue("innocent", {"n": n}))
    async with queue.worker(concurrency=SLOTS, processes=2) as worker:
        async with asyncio.timeout(100):
            for n, handle in enumerate(good):
                assert await handle.result(timeout=100) == n
            await eventually(lambda: worker.free_slots == SLOTS, "all slots are free")
            await worker.run_until_idle()
        await works_on(queue, worker)
    for attack, handle in bad.items():
        job = await handle.job()
        if attack in hostile_jobs.HARMLESS:
            assert (job.status, job.last_error) == (State.COMPLETED, None), attack
            continue
        assert job.status is State.FAILED, attack
        assert job.last_error, attack
        assert len(job.last_error) <= 2_000, attack
