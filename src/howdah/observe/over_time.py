"""Over time: measures of the queue, or of one type, in the last hour, day or week.

In SQL  sql/20_tables/measure_history.sql, filled by compact_measures.sql and sample_waiting.sql

The rows with the type '' are of all types together. A chart reads those, and the rows of its type:
a few hundred, whatever ran and however many types there are. A point is unknown (None), not zero,
if no worker was alive in its time. Counts end at the last compacted minute, one to three minutes
ago.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

import asyncpg
import msgspec

from howdah.histogram import CELLS, Times
from howdah.observe.count import Count
from howdah.store import Store, query

MOST = 2000  # rows of one type that are read, the newest
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)  # the same as in compact_measures.sql


class Range(StrEnum):
    """How far back a chart goes."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"

    @property
    def step(self) -> timedelta:
        """The length of one point."""
        return _SHAPES[self][0]

    @property
    def points(self) -> int:
        return _SHAPES[self][1]


_SHAPES = {
    Range.HOUR: (timedelta(minutes=1), 60),
    Range.DAY: (timedelta(minutes=15), 96),
    Range.WEEK: (timedelta(hours=2), 84),
}


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured in one step. Counts are null if no worker was alive in it."""

    at: datetime  # when it began
    minutes: int = 0  # of the step, in which a worker was alive
    completed: int | None = None
    failed: int | None = None  # for good
    retried: int | None = None  # failed attempts that are tried again
    waiting: Count | None = None  # the largest number in line, counted once a minute
    pickup: Times = Times()
    run: Times = Times()

    def per_minute(self, count: int | None) -> float | None:
        """Divide a count by the minutes in which it was counted."""
        return None if count is None or not self.minutes else count / self.minutes


class OverTime(msgspec.Struct, frozen=True, kw_only=True):
    """Measures of the queue, or of one type, over time."""

    range: Range
    job_type: str | None  # null: all types together
    at: datetime  # by the server's clock
    step: timedelta  # the length of each point
    points: list[Point]  # oldest first


async def over_time(
    store: Store,
    range: Range = Range.HOUR,
    job_type: str | None = None,
    *,
    within: timedelta = query.WITHIN,
) -> OverTime:
    """Read the measures of all types together, or of one type."""
    now: datetime = await query.fetchval(store, within, "select howdah.clock()")
    starts = starts_of(range, now)
    rows = await _rows(store, within, job_type or "", starts[0], now)
    all_types = rows if job_type is None else await _minutes(store, within, starts[0], now)
    return OverTime(
        range=range,
        job_type=job_type,
        at=now,
        step=range.step,
        points=_points(range, starts, rows, all_types),
    )


_count = range  # the parameter `range` hides the builtin


def starts_of(range: Range, now: datetime) -> list[datetime]:
    """Return when each point begins, oldest first."""
    last = now - (now - _ORIGIN) % range.step
    return [last - range.step * n for n in reversed(_count(range.points))]


async def _rows(
    store: Store, within: timedelta, job_type: str, first: datetime, now: datetime
) -> Sequence[asyncpg.Record]:
    """Read the history of one type; rows in the future, of a wrong clock, are left out."""
    return await query.fetch(store, within, f"select * {_HISTORY}", job_type, first, now, MOST)


async def _minutes(
    store: Store, within: timedelta, first: datetime, now: datetime
) -> Sequence[asyncpg.Record]:
    """Read when a worker was alive, and when waiting jobs were counted."""
    return await query.fetch(
        store, within, f"select at, minutes, waiting, more {_HISTORY}", "", first, now, MOST
    )


_HISTORY = (
    "from howdah.measure_history where job_type = $1 and at >= $2 and at <= $3 "
    "order by at desc limit $4"
)


class _Sum:
    """The sum of the rows of one step."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = dict.fromkeys(("completed", "failed", "retried"), 0)
        self.cells: dict[str, list[int]] = {"pickup": [0] * CELLS, "run": [0] * CELLS}
        self.seconds: dict[str, float] = {"pickup": 0.0, "run": 0.0}
        self.waiting: int = 0
        self.more: bool = False

    def add(self, row: asyncpg.Record) -> None:
        for name in self.counts:
            self.counts[name] += row[name]
        for name, cells in self.cells.items():
            for n, jobs in enumerate(row[name][:CELLS]):
                cells[n] += jobs
            self.seconds[name] += row[f"{name}_seconds"]
        self.waiting = max(self.waiting, row["waiting"] or 0)
        self.more |= row["more"]

    def times(self, name: str) -> Times:
        return Times.of(self.cells[name], self.seconds[name])


def _points(
    range: Range,
    starts: Sequence[datetime],
    rows: Sequence[asyncpg.Record],
    all_types: Sequence[asyncpg.Record],
) -> list[Point]:
    sums: defaultdict[int, _Sum] = defaultdict(_Sum)
    minutes: defaultdict[int, int] = defaultdict(int)
    counted: set[int] = set()
    for row in rows:
        sums[(row["at"] - starts[0]) // range.step].add(row)
    for row in all_types:
        n = (row["at"] - starts[0]) // range.step
        minutes[n] += row["minutes"]
        if row["waiting"] is not None:
            counted.add(n)
    return [_point(at, sums[n], minutes[n], n in counted) for n, at in enumerate(starts)]


def _point(at: datetime, total: _Sum, minutes: int, counted: bool) -> Point:
    counts: dict[str, Any] = total.counts if minutes else {}
    return Point(
        at=at,
        minutes=minutes,
        waiting=Count(total.waiting, total.more) if counted else None,
        pickup=total.times("pickup"),
        run=total.times("run"),
        **counts,
    )
