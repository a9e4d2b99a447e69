"""When a worker does its next round of upkeep."""

from __future__ import annotations

import time
from datetime import timedelta

from howdah import Queue
from howdah.upkeep.upkeep import Upkeep


async def test_jobs_that_become_due_one_after_another_are_promoted_together(queue: Queue) -> None:
    """Otherwise a stream of retries would cause one round of upkeep per job."""
    hour = timedelta(hours=1)
    await queue.enqueue("mail", delay=hour)
    due = await queue.enqueue("mail", delay=hour)
    await queue.store.fetch("update howdah.jobs_live set run_at = now() where id = $1", due.id)
    upkeep = Upkeep(queue.store, "worker", every=timedelta(milliseconds=1), stale_after=hour)
    started_at = time.monotonic()
    wait = await upkeep.step()
    assert time.monotonic() + wait >= started_at + 0.02, (
        "one job was promoted and the next is due later"
    )
