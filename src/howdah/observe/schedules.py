"""Schedules: what fires when, and what became of the last firing.

In SQL  sql/20_tables/schedules.sql
"""

from __future__ import annotations

from datetime import datetime, timedelta
from heapq import merge
from itertools import islice
from typing import Any

import msgspec

from howdah import payload
from howdah.checks.schedule_names import unknown_schedule
from howdah.states import State
from howdah.store import Store, query
from howdah.timing import Missed, Overlap, Timing

MOST = 2000  # schedules that are read: the first by name
MOST_UPCOMING = 1000
LATE = timedelta(minutes=1)  # a schedule that is due for so long should have fired


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs are enqueued at which times, and the last of them."""

    name: str
    job_type: str
    data: dict[str, Any]
    options: dict[str, Any]  # of its jobs: other parameters of enqueue
    cron: str | None
    every: timedelta | None
    tz: str
    missed: Missed
    overlap: Overlap
    declared: bool  # made by code; else by a person
    paused_at: datetime | None
    paused_by: str | None
    orphaned_at: datetime | None  # since when the code does not declare it any more
    next_firing: datetime | None  # None: it does not fire, or a worker has yet to compute it
    last_firing: datetime | None
    last_job_id: Any
    last_status: State | None  # of that job; None: there is none, or it was pruned
    last_skipped: datetime | None
    problem: str | None  # why it cannot fire, or why its last firing enqueued no job
    changed_at: datetime
    changed_by: str
    late: bool  # it should have fired, and has not

    @property
    def state(self) -> str:
        """Return `orphaned`, `paused`, `stopped` because of its problem, or `active`."""
        if self.orphaned_at is not None:
            return "orphaned"
        if self.paused_at is not None:
            return "paused"
        return "stopped" if self.problem is not None and self.next_firing is None else "active"

    @property
    def timing(self) -> Timing:
        return Timing(self.cron, self.every, self.tz)

    @property
    def last_outcome(self) -> str:
        """Return what became of the last firing: the state of its job, skipped, or nothing yet."""
        if self.last_skipped is not None and (
            self.last_firing is None or self.last_skipped > self.last_firing
        ):
            return "skipped"
        if self.last_firing is None:
            return ""
        return "refused" if self.last_job_id is None else self.last_status or "pruned"


class Upcoming(msgspec.Struct, frozen=True):
    """A firing to come."""

    at: datetime
    name: str
    job_type: str


_COLUMNS = """
    select s.name, s.job_type::text as job_type, s.data::jsonb as data, s.options, s.cron,
           s.every, s.tz, s.missed, s.overlap, s.declared is not null as declared,
           s.paused_at, s.paused_by, s.orphaned_at,
           nullif(s.next_firing, 'infinity') as next_firing, s.last_firing,
           s.last_job_id,
           coalesce(
               (select j.status::text from howdah.jobs_live as j where j.id = s.last_job_id),
               (select j.status::text from howdah.jobs_finished as j where j.id = s.last_job_id
                limit 1)) as last_status,
           s.last_skipped, s.problem, s.changed_at, s.changed_by,
           s.paused_at is null and s.orphaned_at is null
               and coalesce(s.next_firing, s.counts_from) < howdah.clock() - $2::interval as late
    from howdah.schedules as s
"""
_ALL = f"{_COLUMNS} order by s.name limit $1"
_ONE = f"{_COLUMNS} where s.name = $3 limit $1"


async def schedules(store: Store, *, within: timedelta = query.WITHIN) -> list[Schedule]:
    """Read all schedules by name."""
    return [_schedule(row) for row in await query.fetch(store, within, _ALL, MOST, LATE)]


class SchedulesNow(msgspec.Struct, frozen=True):
    """All schedules, and when they were read, by the server's clock."""

    at: datetime
    schedules: list[Schedule]


async def schedules_now(store: Store, *, within: timedelta = query.WITHIN) -> SchedulesNow:
    """Read all schedules, and the time."""
    now: datetime = await query.fetchval(store, within, "select howdah.clock()")
    return SchedulesNow(now, await schedules(store, within=within))


async def schedule(store: Store, name: str, *, within: timedelta = query.WITHIN) -> Schedule:
    """Read one schedule; raises UnknownSchedule."""
    rows = await query.fetch(store, within, _ONE, 1, LATE, name)
    if not rows:
        known = await query.fetch(store, within, "select name from howdah.schedules limit $1", MOST)
        raise unknown_schedule(name, [row["name"] for row in known])
    return _schedule(rows[0])


async def upcoming(store: Store, count: int, *, within: timedelta = query.WITHIN) -> list[Upcoming]:
    """Compute the next firings of all schedules that fire, the next one first."""
    firing = [s for s in await schedules(store, within=within) if s.state == "active"]
    streams = [_firings(each) for each in firing]
    return list(islice(merge(*streams, key=lambda each: (each.at, each.name)), count))


def _firings(of: Schedule) -> Any:
    at = of.next_firing
    while at is not None:
        yield Upcoming(at, of.name, of.job_type)
        at = of.timing.following(at)


def _schedule(row: Any) -> Schedule:
    values: dict[str, Any] = dict(row)
    for name in ("data", "options"):
        values[name] = payload.decode(values[name])
    status = values["last_status"]
    values["last_status"] = None if status is None else State(status)
    return Schedule(**values)
