"""How soon a worker looks after the queue again."""

from __future__ import annotations

import time
from datetime import timedelta

from howdah import Queue
from howdah.upkeep.upkeep import Upkeep


async def test_jobs_that_become_due_one_after_another_are_promoted_together(queue: Queue) -> None:
    """Else a stream of retries would call for a round of upkeep per job."""
    hour = timedelta(hours=1)
    await queue.enqueue("mail", delay=hour)
    due = await queue.enqueue("mail", delay=hour)
    await queue.store.fetch("update howdah.jobs_live set run_at = now() where id = $1", due.id)
    upkeep = Upkeep(queue.store, "worker", every=timedelta(milliseconds=1), stale_after=hour)
    began = time.monotonic()
    wait = await upkeep.step()
    assert time.monotonic() + wait >= began + 0.02, "one was promoted and the next is to come"
