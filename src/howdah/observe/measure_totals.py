"""Measure totals: the sums of everything that workers have measured, per job type.

In SQL  sql/80_observe/measured.sql

The sums never fall, whatever is compacted, so they can be counters of a monitoring system. They
tell what howdah's own workers did; a foreign worker is counted only if it records measures.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from howdah.store import Store, query


class MeasureTotals(msgspec.Struct, frozen=True, kw_only=True):
    """How attempts of one job type ended, and how long they waited and ran."""

    job_type: str
    completed: int
    failed: int
    retried: int
    cancelled: int
    released: int
    pickup: list[int]  # attempts by class of time: see histogram.py
    pickup_seconds: float
    run: list[int]
    run_seconds: float


async def measure_totals(store: Store, *, within: timedelta = query.WITHIN) -> list[MeasureTotals]:
    """Read the sums of every job type."""
    rows = await query.fetch(store, within, "select * from howdah.measured()")
    return [
        MeasureTotals(**{name: row[name] for name in MeasureTotals.__struct_fields__})
        for row in rows
    ]
