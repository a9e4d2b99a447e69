"""Failures: jobs that failed of late, the same errors together.

In SQL  sql/80_observe/recent_failures.sql, fingerprint.sql

Errors are the same when their fingerprints are: numbers, ids, hex and quoted text left out. Only
the newest failed jobs are looked at, along the index that has nothing but failed and cancelled
ones. The jobs of a group are found by `page` with its type and fingerprint.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from howdah.observe import look
from howdah.observe.page import Filter
from howdah.states import State
from howdah.store import Store

DEPTH = 2_000  # failed jobs that are looked at
TREND = 24  # hours


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one type that failed alike."""

    job_type: str
    fingerprint: str
    jobs: int  # among those looked at
    first_at: datetime
    last_at: datetime
    example: str  # the newest error, in full
    newest: UUID  # the job of the example
    trend: list[int]  # per hour, the last day, oldest first

    @property
    def filter(self) -> Filter:
        """The filter that finds all jobs of the group."""
        return Filter(
            status=(State.FAILED,), job_type=(self.job_type,), fingerprint=self.fingerprint
        )


class Failures(msgspec.Struct, frozen=True):
    """Groups of failed jobs, the latest first."""

    groups: list[FailureGroup]
    looked_at: int
    more: bool  # there are older failed jobs that were not looked at


async def failures(
    store: Store,
    job_type: str | None = None,
    *,
    depth: int = DEPTH,
    within: timedelta = look.WITHIN,
) -> Failures:
    """Group the newest failed jobs by their errors."""
    rows = await look.fetch(
        store,
        within,
        "select * from howdah.recent_failures($1, $2, $3)",
        job_type,
        depth,
        TREND,
    )
    groups = [
        FailureGroup(
            job_type=row["job_type"],
            fingerprint=row["fingerprint"],
            jobs=row["jobs"],
            first_at=row["first_at"],
            last_at=row["last_at"],
            example=row["example"],
            newest=row["newest"],
            trend=_trend(row["trend"]),
        )
        for row in rows
    ]
    looked_at = sum(group.jobs for group in groups)
    return Failures(groups, looked_at, bool(rows) and rows[0]["more"])


def _trend(by_hours_ago: str) -> list[int]:
    counts = msgspec.json.decode(by_hours_ago, type=dict[int, int])
    return [counts.get(hour, 0) for hour in range(TREND - 1, -1, -1)]
