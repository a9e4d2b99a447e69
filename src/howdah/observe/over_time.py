"""Over time: how the queue, or one type, did in the last hour, day or week.

In SQL  sql/20_tables/measure_history.sql, filled by compact_measures.sql and sample_waiting.sql

A chart of all types reads the rows of '' alone, one of a type its own rows and those: a few hundred
each, whatever ran and however many types there are. A point in whose time no worker was there is
unknown (None), not zero. Counts are known up to the last folded minute, one to three minutes ago.
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

MOST = 2000  # rows that are read of one type; the newest
_ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)  # as compact_measures.sql has it


class Range(StrEnum):
    """How far back a chart goes."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"

    @property
    def step(self) -> timedelta:
        """How long a point of it is."""
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
    """What was measured in one step. Counts are null where no worker was there to measure."""

    at: datetime  # when it began
    minutes: int = 0  # in so many of its minutes a worker was there
    completed: int | None = None
    failed: int | None = None  # for good
    retried: int | None = None  # failed attempts that are tried again
    waiting: Count | None = None  # the most that stood in line at once, counted once a minute
    pickup: Times = Times()
    run: Times = Times()

    def per_minute(self, count: int | None) -> float | None:
        """Divide a count by the minutes that it was counted in."""
        return None if count is None or not self.minutes else count / self.minutes


class OverTime(msgspec.Struct, frozen=True, kw_only=True):
    """How the queue, or one type of it, did over time."""

    range: Range
    job_type: str | None  # null: all types together
    at: datetime  # by the server's clock
    step: timedelta  # how long each point is
    points: list[Point]  # oldest first


async def over_time(
    store: Store,
    range: Range = Range.HOUR,
    job_type: str | None = None,
    *,
    within: timedelta = query.WITHIN,
) -> OverTime:
    """Look at all types together, or at one."""
    now: datetime = await query.fetchval(store, within, "select howdah.clock()")
    last = now - (now - _ORIGIN) % range.step
    starts = [last - range.step * n for n in reversed(_count(range.points))]
    own = await _rows(store, within, job_type or "", starts[0], now)
    every = own if job_type is None else await _watched(store, within, starts[0], now)
    return OverTime(
        range=range,
        job_type=job_type,
        at=now,
        step=range.step,
        points=_points(range, starts, own, every),
    )


_count = range  # the word means something else in this file


async def _rows(
    store: Store, within: timedelta, job_type: str, first: datetime, now: datetime
) -> Sequence[asyncpg.Record]:
    """Read what is kept of one type; of a clock that was ahead, nothing that is yet to come."""
    return await query.fetch(store, within, f"select * {_KEPT}", job_type, first, now, MOST)


async def _watched(
    store: Store, within: timedelta, first: datetime, now: datetime
) -> Sequence[asyncpg.Record]:
    """Read when somebody was there, and when it was counted who waits."""
    return await query.fetch(
        store, within, f"select at, minutes, waiting, more {_KEPT}", "", first, now, MOST
    )


_KEPT = (
    "from howdah.measure_history where job_type = $1 and at >= $2 and at <= $3 "
    "order by at desc limit $4"
)


class _Sum:
    """What one step adds up to."""

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
    own: Sequence[asyncpg.Record],
    every: Sequence[asyncpg.Record],
) -> list[Point]:
    sums: defaultdict[int, _Sum] = defaultdict(_Sum)
    minutes: defaultdict[int, int] = defaultdict(int)
    counted: set[int] = set()
    for row in own:
        sums[(row["at"] - starts[0]) // range.step].add(row)
    for row in every:
        n = (row["at"] - starts[0]) // range.step
        minutes[n] += row["minutes"]
        if row["waiting"] is not None:
            counted.add(n)
    return [_point(at, sums[n], minutes[n], n in counted) for n, at in enumerate(starts)]


def _point(at: datetime, found: _Sum, minutes: int, counted: bool) -> Point:
    counts: dict[str, Any] = found.counts if minutes else {}
    return Point(
        at=at,
        minutes=minutes,
        waiting=Count(found.waiting, found.more) if counted else None,
        pickup=found.times("pickup"),
        run=found.times("run"),
        **counts,
    )
