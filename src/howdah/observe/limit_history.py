"""Limit history: how a named limit was used in the last hour, day or week.

In SQL  sql/20_tables/limit_history.sql, filled by sample_limits.sql

The rows with the name '' say how often the limits were counted. Where they were not, a point is
unknown (None), not zero. Attempts are those of the types whose rule names the limit now, from the
history of measures: they count when they end, by howdah's own workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import asyncpg
import msgspec

from howdah.observe.count import Count
from howdah.observe.over_time import MOST, Range, starts_of
from howdah.store import Store, query


class LimitPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The use of a limit in one step."""

    at: datetime  # when it began
    admitted: Count | None = None  # the most that held a slot at once; null: not counted
    mean: float | None = None  # the mean of all counts of the step
    waiting: Count | None = None  # the most that waited at once
    minutes: int = 0  # of the step, in which a worker was alive
    attempts: int | None = None  # that ended; null: no worker was alive

    @property
    def per_minute(self) -> float | None:
        """Attempts per minute in which a worker was alive."""
        return None if self.attempts is None or not self.minutes else self.attempts / self.minutes


class LimitOverTime(msgspec.Struct, frozen=True, kw_only=True):
    """The use of a limit over time."""

    range: Range
    name: str
    at: datetime  # by the server's clock
    step: timedelta  # the length of each point
    points: list[LimitPoint]  # oldest first


async def limit_over_time(
    store: Store, name: str, range: Range = Range.HOUR, *, within: timedelta = query.WITHIN
) -> LimitOverTime:
    """Read the history of one limit; a limit that does not exist was never used."""
    now: datetime = await query.fetchval(store, within, "select howdah.clock()")
    starts = starts_of(range, now)
    counted = await query.fetch(store, within, _USE, "", starts[0], now, MOST)
    used = await query.fetch(store, within, _USE, name, starts[0], now, MOST)
    ended = await query.fetch(store, within, _ATTEMPTS, name, starts[0], now, MOST)
    return LimitOverTime(
        range=range,
        name=name,
        at=now,
        step=range.step,
        points=_points(range, starts, counted, used, ended),
    )


_USE = """
    select h.at, h.samples, h.admitted, h.admitted_sum, h.waiting, h.more
    from howdah.limit_history as h where h.name = $1 and h.at >= $2 and h.at <= $3
    order by h.at desc limit $4
"""

_ATTEMPTS = """
    select h.at, sum(h.minutes)::int as minutes, sum(h.completed + h.failed + h.retried)
               filter (where h.job_type <> '') as attempts
    from howdah.measure_history as h
    where h.job_type = any (array[''] || array(
              select t.job_type::text from howdah.type_limits as t
              where t.limit_name = $1 order by 1 limit 100))
      and h.at >= $2 and h.at <= $3
    group by h.at order by h.at desc limit $4
"""


class _Sum:
    """The sum of the rows of one step."""

    def __init__(self) -> None:
        self.samples = 0
        self.admitted = 0
        self.admitted_sum = 0
        self.waiting = 0
        self.more = False
        self.minutes = 0
        self.attempts = 0

    def add_use(self, row: asyncpg.Record) -> None:
        self.samples += row["samples"]
        self.admitted = max(self.admitted, row["admitted"])
        self.admitted_sum += row["admitted_sum"]
        self.waiting = max(self.waiting, row["waiting"])
        self.more |= row["more"]

    def add_attempts(self, row: asyncpg.Record) -> None:
        self.minutes += row["minutes"]
        self.attempts += int(row["attempts"] or 0)

    def point(self, at: datetime) -> LimitPoint:
        attempts = self.attempts if self.minutes else None
        if not self.samples:
            return LimitPoint(at=at, minutes=self.minutes, attempts=attempts)
        return LimitPoint(
            at=at,
            admitted=Count(self.admitted, self.more),
            mean=self.admitted_sum / self.samples,
            waiting=Count(self.waiting, self.more),
            minutes=self.minutes,
            attempts=attempts,
        )


def _points(
    range: Range,
    starts: Sequence[datetime],
    counted: Sequence[asyncpg.Record],
    used: Sequence[asyncpg.Record],
    ended: Sequence[asyncpg.Record],
) -> list[LimitPoint]:
    sums = [_Sum() for _ in starts]

    def sum_at(at: datetime) -> _Sum:
        return sums[(at - starts[0]) // range.step]

    for row in (*counted, *used):
        sum_at(row["at"]).add_use(row)
    for row in ended:
        sum_at(row["at"]).add_attempts(row)
    return [total.point(at) for total, at in zip(sums, starts, strict=True)]
