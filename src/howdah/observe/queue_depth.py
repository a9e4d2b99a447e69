"""Queue depth: how many jobs of each type are in each state.

In SQL  the view queue_depth in sql/80_observe/views.sql

Finished jobs come from `finished_counts`, so the history is not read.
"""

from __future__ import annotations

from howdah.states import State
from howdah.store import Store


async def queue_depth(store: Store) -> dict[str, dict[State, int]]:
    """Count jobs by type and state."""
    rows = await store.fetch("select job_type, status, jobs from howdah.queue_depth order by 1, 2")
    by_type: dict[str, dict[State, int]] = {}
    for job_type, status, jobs in rows:
        by_type.setdefault(job_type, {})[State(status)] = jobs
    return by_type
