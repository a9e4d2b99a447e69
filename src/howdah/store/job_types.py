"""Job types: the calls with which a worker registers the types that it knows.

Comes after  run/type_registration.py   which decides when to call them
In SQL       sql/50_run/register_job_types.sql, touch_job_types.sql
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from howdah.store.store import Store
from howdah.version import VERSION


async def register_job_types(
    store: Store, worker_id: str, types: Sequence[dict[str, object]]
) -> None:
    """Write what a worker knows of its types; the keys are columns of howdah.job_types."""
    await store.fetchval(
        "select howdah.register_job_types($1, $2, $3) from howdah.async_commit()",
        worker_id,
        msgspec.json.encode(types).decode(),
        VERSION,
    )


async def touch_job_types(store: Store, names: Sequence[str]) -> set[str]:
    """Say that a worker still knows these types; returns those that are not registered."""
    rows = await store.fetch(
        "select t.* from howdah.async_commit(), howdah.touch_job_types($1) as t", list(names)
    )
    return {row[0] for row in rows}
