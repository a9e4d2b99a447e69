"""Overview: the current numbers of every job type, at a cost that does not grow with the queue.

In SQL  sql/80_observe/lane_counts.sql, limited_counts.sql, held_counts.sql,
        scheduled_counts.sql, measured.sql

Waiting jobs are counted up to a cap. Finished jobs come from `finished_counts` and `measures`; the
history is never read. While a long transaction is open, even a short line is slow to count. So
each part has its own time limit; a part that takes too long is left out and named in `late`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import msgspec

from howdah.checks.queue_names import DEFAULT_QUEUE
from howdah.histogram import Times
from howdah.observe.count import CAP, Count, capped
from howdah.observe.paused import Paused, paused
from howdah.observe.queues import queue_of_types
from howdah.observe.workers import LiveWorker, live_workers
from howdah.states import State
from howdah.store import Store, query

RECENT = timedelta(minutes=5)  # the period of failure rates and times
RATE = timedelta(minutes=1)  # the period of the throughput
TREND = 60  # minutes


class Lane(msgspec.Struct, frozen=True):
    """The jobs of one type and priority that stand in line."""

    priority: int
    jobs: Count
    oldest: timedelta


class Minute(msgspec.Struct, frozen=True):
    """How attempts ended in one minute."""

    at: datetime
    completed: int = 0
    failed: int = 0
    retried: int = 0


class TypeNow(msgspec.Struct, frozen=True, kw_only=True):
    """The current numbers of one job type."""

    job_type: str
    queue: str = DEFAULT_QUEUE
    waiting: Count = Count()  # in line, paused or not
    oldest: timedelta | None = None  # how long the first of them has waited
    waiting_for_key: Count = Count()  # for a slot of their concurrency key
    waiting_for_limit: Count = Count()  # for their named limit
    scheduled: Count = Count()  # not due yet
    retrying: int = 0  # of the scheduled ones, after a failed attempt
    unread: int = 0  # of the scheduled ones, handed back because a payload could not be read
    next_due: datetime | None = None
    claimed: int = 0
    running: int = 0
    paused: Paused | None = None
    workers: int = 0  # live workers that know the type
    per_second: float = 0.0  # attempts that ended
    failure_rate: float | None = None  # the share of recent attempts that failed
    pickup: Times = Times()
    run: Times = Times()
    finished: dict[State, int] = msgspec.field(default_factory=dict[State, int])  # kept ones
    finished_today: dict[State, int] = msgspec.field(default_factory=dict[State, int])
    lanes: list[Lane] = msgspec.field(default_factory=list[Lane])  # highest priority first
    trend: list[Minute] = msgspec.field(default_factory=list[Minute])  # an hour, oldest first


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The current numbers of the whole queue."""

    at: datetime  # by the server's clock
    types: list[TypeNow]
    workers: int  # alive
    slots: int
    busy: int  # as of each worker's last beat
    late: list[str]  # parts that took too long and are missing


async def overview(
    store: Store, *, within: timedelta = query.WITHIN, cap: int = CAP, trend: bool = True
) -> Overview:
    """Read the current numbers of every type."""
    reader = _Reader(store, within, cap)
    now: datetime = await query.fetchval(store, within, "select howdah.clock()")
    await reader.read_all(now, trend)
    return Overview(
        at=now,
        types=[reader.type_now(job_type) for job_type in sorted(reader.job_types)],
        workers=len(reader.live_workers),
        slots=sum(worker.slots for worker in reader.live_workers),
        busy=sum(worker.busy for worker in reader.live_workers),
        late=reader.late,
    )


class _Reader:
    """Reads the parts of an overview and collects them by type."""

    def __init__(self, store: Store, within: timedelta, cap: int) -> None:
        self._store = store
        self._within = within
        self._cap = cap
        self.late: list[str] = []
        self.job_types: set[str] = set()
        self.live_workers: list[LiveWorker] = []
        self._queues: dict[str, str] = {}
        self._fields: defaultdict[str, dict[str, Any]] = defaultdict(dict)

    async def read_all(self, now: datetime, trend: bool) -> None:
        self._add_lanes(
            await self._part("waiting", "select * from howdah.lane_counts($1)", self._cap), now
        )
        self._add_limited(
            await self._part("limited", "select * from howdah.limited_counts($1)", self._cap)
        )
        for row in await self._part(
            "scheduled", "select * from howdah.scheduled_counts($1)", self._cap + 1
        ):
            job_type, jobs, retrying, due, unread = row
            self._set(job_type, scheduled=capped(jobs, self._cap), retrying=retrying, next_due=due)
            self._set(job_type, unread=unread)
        for job_type, status, jobs in await self._part(
            "running", "select * from howdah.held_counts($1)", 10 * self._cap
        ):
            # `claimed` has those that were claimed a moment ago already
            before = self._fields[job_type].get(status, 0)
            self._set(job_type, **{status: before + jobs})
        self._add_recent(
            await self._part("times", "select * from howdah.measured($1)", now - RECENT),
            await self._part("rates", "select * from howdah.measured($1)", now - RATE),
        )
        if trend:
            first = (now - timedelta(minutes=TREND - 1)).replace(second=0, microsecond=0)
            self._add_trend(
                await self._part("trend", "select * from howdah.measured_by_minute($1)", first),
                first,
            )
        self._add_finished(
            await self._part(
                "finished",
                "select job_type, status, sum(jobs)::bigint, "
                "(sum(jobs) filter (where day = howdah.today()))::bigint "
                "from howdah.finished_counts group by 1, 2",
            )
        )
        self.live_workers = await live_workers(self._store, self._within)
        for worker in self.live_workers:
            for job_type in worker.job_types:
                workers = self._fields[job_type].get("workers", 0) + 1
                self._set(job_type, workers=workers)
        for job_type, pause in (await paused(self._store, within=self._within)).items():
            self._set(job_type, paused=pause)
        self._queues = await queue_of_types(self._store, within=self._within)

    async def _part(self, name: str, sql: str, *args: object) -> Sequence[asyncpg.Record]:
        try:
            return await query.fetch(self._store, self._within, sql, *args)
        except query.TookTooLong:
            self.late.append(name)
            return []

    def _set(self, job_type: str, **fields: Any) -> None:
        self.job_types.add(job_type)
        self._fields[job_type].update(fields)

    def _add_lanes(self, rows: Sequence[asyncpg.Record], now: datetime) -> None:
        lanes: defaultdict[str, list[Lane]] = defaultdict(list)
        for job_type, priority, jobs, more, first_ready_at, claimed in rows:
            if claimed:
                before = self._fields[job_type].get("claimed", 0)
                self._set(job_type, claimed=before + claimed)
            if first_ready_at is not None:
                waited = max(now - first_ready_at, timedelta())
                lanes[job_type].append(Lane(priority, Count(jobs or 0, more), waited))
        for job_type, of_type in lanes.items():
            self._set(
                job_type,
                lanes=of_type,
                waiting=sum((lane.jobs for lane in of_type), Count()),
                oldest=max(lane.oldest for lane in of_type),
            )

    def _add_limited(self, rows: Sequence[asyncpg.Record]) -> None:
        for job_type, waits_for, jobs, more in rows:
            field = f"waiting_for_{waits_for}"
            before = self._fields[job_type].get(field, Count())
            self._set(job_type, **{field: before + Count(jobs, more)})

    def _add_recent(self, times: Sequence[asyncpg.Record], rates: Sequence[asyncpg.Record]) -> None:
        for row in times:
            failed = row["failed"] + row["retried"]
            attempts = row["completed"] + failed
            self._set(
                row["job_type"],
                failure_rate=failed / attempts if attempts else None,
                pickup=Times.of(row["pickup"], row["pickup_seconds"]),
                run=Times.of(row["run"], row["run_seconds"]),
            )
        for row in rates:
            ended = row["completed"] + row["failed"] + row["retried"] + row["cancelled"]
            self._set(row["job_type"], per_second=ended / RATE.total_seconds())

    def _add_trend(self, rows: Sequence[asyncpg.Record], first: datetime) -> None:
        by_type: defaultdict[str, dict[datetime, Minute]] = defaultdict(dict)
        for job_type, at, completed, failed, retried in rows:
            by_type[job_type][at] = Minute(at, completed, failed, retried)
        minutes = [first + timedelta(minutes=n) for n in range(TREND)]
        for job_type, measured in by_type.items():
            self._set(job_type, trend=[measured.get(at) or Minute(at) for at in minutes])

    def _add_finished(self, rows: Sequence[asyncpg.Record]) -> None:
        kept: defaultdict[str, dict[State, int]] = defaultdict(dict)
        today: defaultdict[str, dict[State, int]] = defaultdict(dict)
        for job_type, status, jobs, jobs_today in rows:
            if jobs:
                kept[job_type][State(status)] = jobs
            if jobs_today:
                today[job_type][State(status)] = jobs_today
        for job_type, states in kept.items():
            self._set(job_type, finished=states, finished_today=today[job_type])

    def type_now(self, job_type: str) -> TypeNow:
        queue = self._queues.get(job_type, DEFAULT_QUEUE)
        return TypeNow(job_type=job_type, queue=queue, **self._fields[job_type])
