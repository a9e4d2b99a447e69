"""Failures: jobs that failed recently, and jobs that failed and are tried again.

In SQL  sql/80_observe/recent_failures.sql, retrying_failures.sql, fingerprint.sql

Errors are the same if their fingerprints are: without numbers, ids, hex strings and quoted text.
Only the newest failed jobs are read, along the index of failed and cancelled jobs, and a limited
number of live jobs. `page` finds the jobs of a group with its filter.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import asyncpg
import msgspec

from howdah.observe.filter import LIVE, Filter
from howdah.observe.job_history import instant_of
from howdah.states import State
from howdah.store import Store, query

DEPTH = 2_000  # failed jobs that are read
TREND = 24  # hours


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one type that failed with the same error."""

    job_type: str
    fingerprint: str
    jobs: int  # among those that were read
    first_at: datetime
    last_at: datetime
    example: str  # the newest error, in full
    newest: UUID  # the job of the example
    trend: list[int]  # per hour, the last day, oldest first
    retrying: bool = False  # the jobs have attempts left and are tried again
    next_at: datetime | None = None  # the next retry of the group
    attempts: int | None = None  # the highest number of attempts of a job in the group

    @property
    def filter(self) -> Filter:
        """The filter that finds all jobs of the group."""
        return Filter(
            status=LIVE if self.retrying else (State.FAILED,),
            job_type=(self.job_type,),
            fingerprint=self.fingerprint,
        )


class Failures(msgspec.Struct, frozen=True):
    """Groups of jobs that failed with the same error, the latest first."""

    groups: list[FailureGroup]  # failed for good
    looked_at: int
    more: bool  # there are older failed jobs that were not read
    retrying: list[FailureGroup] = msgspec.field(default_factory=list[FailureGroup])
    retrying_more: bool = False  # there may be more retrying jobs than were read
    late: list[str] = msgspec.field(default_factory=list[str])  # parts that took too long


async def failures(
    store: Store,
    job_type: str | None = None,
    *,
    depth: int = DEPTH,
    within: timedelta = query.WITHIN,
) -> Failures:
    """Group the newest failed jobs, and those that are tried again, by error."""
    rows = await query.fetch(
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
    late: list[str] = []
    try:
        live = await query.fetch(
            store,
            within,
            "select *, howdah.clock() as now from howdah.retrying_failures($1, $2)",
            job_type,
            depth,
        )
    except query.TookTooLong:  # many live jobs or many dead rows: return the failed ones alone
        live, late = (), ["retrying"]
    return Failures(
        groups,
        sum(group.jobs for group in groups),
        bool(rows) and rows[0]["more"],
        _retrying_groups(live),
        bool(live) and live[0]["more"],
        late,
    )


def _retrying_groups(rows: Sequence[asyncpg.Record]) -> list[FailureGroup]:
    groups = [_retrying_group(row) for row in rows]
    return sorted(groups, key=lambda group: group.last_at, reverse=True)


def _retrying_group(row: asyncpg.Record) -> FailureGroup:
    now: datetime = row["now"]
    instants = map(instant_of, row["ended"])
    ended = [min(at, now) for at in instants if at is not None and at.year >= 1970]
    by_hour = [0] * TREND
    for at in ended:
        hours_ago = (now - at) // timedelta(hours=1)
        if hours_ago < TREND:
            by_hour[TREND - 1 - hours_ago] += 1
    return FailureGroup(
        job_type=row["job_type"],
        fingerprint=row["fingerprint"],
        jobs=row["jobs"],
        first_at=min(ended, default=now),
        last_at=max(ended, default=now),
        example=row["example"],
        newest=row["newest"],
        trend=by_hour,
        retrying=True,
        next_at=row["next_at"],
        attempts=row["attempts"],
    )


def _trend(by_hours_ago: str) -> list[int]:
    counts = msgspec.json.decode(by_hours_ago, type=dict[int, int])
    return [counts.get(hour, 0) for hour in range(TREND - 1, -1, -1)]
