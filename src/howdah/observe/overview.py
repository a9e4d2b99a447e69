"""Overview: every job type at a glance, at a cost that does not grow with the queue.

In SQL  sql/80_observe/lane_counts.sql, held_counts.sql, scheduled_counts.sql, measured.sql

What waits is counted up to a cap, what ended comes from `finished_counts` and `measures`; the
history is never read. Under a long transaction even a short line is slow to count, so each part has
the time limit for itself: a part that takes too long is left out and named in `late`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import msgspec

from howdah import payload
from howdah.histogram import Times
from howdah.observe.count import CAP, Count, capped
from howdah.states import State
from howdah.store import Store, query
from howdah.store.steer import Paused, paused

RECENT = timedelta(minutes=5)  # what rates of failure and times are of
RATE = timedelta(minutes=1)  # what the throughput is of
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
    """How things are with one job type."""

    job_type: str
    waiting: Count = Count()  # in line, paused or not
    oldest: timedelta | None = None  # how long the first of them has stood there
    scheduled: Count = Count()  # waiting for their time
    retrying: int = 0  # of those, after a failed attempt
    unread: int = 0  # and handed back by workers that cannot read their payload
    next_due: datetime | None = None
    claimed: int = 0
    running: int = 0
    paused: Paused | None = None
    listeners: int = 0  # live workers that know the type
    per_second: float = 0.0  # attempts ended
    failure_rate: float | None = None  # failed attempts of all, lately
    pickup: Times = Times()
    run: Times = Times()
    finished: dict[State, int] = msgspec.field(default_factory=dict[State, int])  # as far as kept
    finished_today: dict[State, int] = msgspec.field(default_factory=dict[State, int])
    lanes: list[Lane] = msgspec.field(default_factory=list[Lane])  # highest priority first
    trend: list[Minute] = msgspec.field(default_factory=list[Minute])  # an hour, oldest first


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """How things are with the whole queue."""

    at: datetime  # by the server's clock
    types: list[TypeNow]
    workers: int  # alive
    slots: int
    busy: int  # as the workers said with their last beat
    late: list[str]  # parts that took too long and are missing


class Listener(msgspec.Struct, frozen=True):
    """A live worker, as far as its beat tells."""

    id: str
    job_types: list[str]
    slots: int
    busy: int
    threads: int = 0  # how many of its slots may run in threads
    threads_busy: int = 0
    thread_types: tuple[str, ...] = ()  # the types that this limit is for

    def places_of(self, job_type: str) -> tuple[int, int]:
        """How many jobs of a type it may run at once, and how many of these places are taken."""
        if job_type not in self.thread_types:
            return self.slots, min(self.busy, self.slots)
        full = self.busy >= self.slots
        return self.threads, self.threads if full else min(self.threads_busy, self.threads)


async def listeners(store: Store, within: timedelta) -> list[Listener]:
    """Return who is alive, and which types each takes."""
    rows = await query.fetch(
        store,
        within,
        "select id, info from howdah.workers where beat_at >= howdah.clock() - silent_after",
    )
    return [_listener(id, payload.decode(info)) for id, info in rows]


def _listener(id: str, info: Any) -> Listener:
    """Read what a worker says of itself; a foreign one may say anything."""
    said: dict[str, Any] = info if isinstance(info, dict) else {}  # pyright: ignore
    return Listener(
        id,
        _names(said.get("job_types")),
        _number(said.get("slots")),
        _number(said.get("running")),
        _number(said.get("threads")),
        _number(said.get("threads_busy")),
        tuple(_names(said.get("thread_types"))),
    )


def _names(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []  # pyright: ignore


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


async def overview(
    store: Store, *, within: timedelta = query.WITHIN, cap: int = CAP, trend: bool = True
) -> Overview:
    """Look at every type."""
    looking = _Looking(store, within, cap)
    now: datetime = await query.fetchval(store, within, "select howdah.clock()")
    await looking.all_parts(now, trend)
    return Overview(
        at=now,
        types=[looking.type_now(job_type) for job_type in sorted(looking.known)],
        workers=len(looking.alive),
        slots=sum(one.slots for one in looking.alive),
        busy=sum(one.busy for one in looking.alive),
        late=looking.late,
    )


class _Looking:
    """The parts of an overview, gathered by type."""

    def __init__(self, store: Store, within: timedelta, cap: int) -> None:
        self._store = store
        self._within = within
        self._cap = cap
        self.late: list[str] = []
        self.known: set[str] = set()
        self.alive: list[Listener] = []
        self._facts: defaultdict[str, dict[str, Any]] = defaultdict(dict)

    async def all_parts(self, now: datetime, trend: bool) -> None:
        self._in_line(
            await self._part("waiting", "select * from howdah.lane_counts($1)", self._cap), now
        )
        for row in await self._part(
            "scheduled", "select * from howdah.scheduled_counts($1)", self._cap + 1
        ):
            job_type, jobs, retrying, due, unread = row
            self._know(job_type, scheduled=capped(jobs, self._cap), retrying=retrying, next_due=due)
            self._know(job_type, unread=unread)
        for job_type, status, jobs in await self._part(
            "running", "select * from howdah.held_counts($1)", 10 * self._cap
        ):
            self._know(job_type, **{status: jobs})
        self._recent(
            await self._part("times", "select * from howdah.measured($1)", now - RECENT),
            await self._part("rates", "select * from howdah.measured($1)", now - RATE),
        )
        if trend:
            first = (now - timedelta(minutes=TREND - 1)).replace(second=0, microsecond=0)
            self._trend(
                await self._part("trend", "select * from howdah.measured_by_minute($1)", first),
                first,
            )
        self._ended(
            await self._part(
                "finished",
                "select job_type, status, sum(jobs)::bigint, "
                "(sum(jobs) filter (where day = howdah.today()))::bigint "
                "from howdah.finished_counts group by 1, 2",
            )
        )
        self.alive = await listeners(self._store, self._within)
        for one in self.alive:
            for job_type in one.job_types:
                self._know(job_type, listeners=self._facts[job_type].get("listeners", 0) + 1)
        for job_type, pause in (await paused(self._store, within=self._within)).items():
            self._know(job_type, paused=pause)

    async def _part(self, name: str, sql: str, *args: object) -> Sequence[asyncpg.Record]:
        try:
            return await query.fetch(self._store, self._within, sql, *args)
        except query.TookTooLong:
            self.late.append(name)
            return []

    def _know(self, job_type: str, **facts: Any) -> None:
        self.known.add(job_type)
        self._facts[job_type].update(facts)

    def _in_line(self, rows: Sequence[asyncpg.Record], now: datetime) -> None:
        lanes: defaultdict[str, list[Lane]] = defaultdict(list)
        for job_type, priority, jobs, more, first_ready_at in rows:
            waited = max(now - first_ready_at, timedelta())
            lanes[job_type].append(Lane(priority, Count(jobs or 0, more), waited))
        for job_type, own in lanes.items():
            self._know(
                job_type,
                lanes=own,
                waiting=sum((lane.jobs for lane in own), Count()),
                oldest=max(lane.oldest for lane in own),
            )

    def _recent(self, times: Sequence[asyncpg.Record], rates: Sequence[asyncpg.Record]) -> None:
        for row in times:
            bad = row["failed"] + row["retried"]
            attempts = row["completed"] + bad
            self._know(
                row["job_type"],
                failure_rate=bad / attempts if attempts else None,
                pickup=Times.of(row["pickup"], row["pickup_seconds"]),
                run=Times.of(row["run"], row["run_seconds"]),
            )
        for row in rates:
            ended = row["completed"] + row["failed"] + row["retried"] + row["cancelled"]
            self._know(row["job_type"], per_second=ended / RATE.total_seconds())

    def _trend(self, rows: Sequence[asyncpg.Record], first: datetime) -> None:
        found: defaultdict[str, dict[datetime, Minute]] = defaultdict(dict)
        for job_type, at, completed, failed, retried in rows:
            found[job_type][at] = Minute(at, completed, failed, retried)
        minutes = [first + timedelta(minutes=n) for n in range(TREND)]
        for job_type, own in found.items():
            self._know(job_type, trend=[own.get(at) or Minute(at) for at in minutes])

    def _ended(self, rows: Sequence[asyncpg.Record]) -> None:
        ever: defaultdict[str, dict[State, int]] = defaultdict(dict)
        today: defaultdict[str, dict[State, int]] = defaultdict(dict)
        for job_type, status, jobs, jobs_today in rows:
            if jobs:
                ever[job_type][State(status)] = jobs
            if jobs_today:
                today[job_type][State(status)] = jobs_today
        for job_type, states in ever.items():
            self._know(job_type, finished=states, finished_today=today[job_type])

    def type_now(self, job_type: str) -> TypeNow:
        return TypeNow(job_type=job_type, **self._facts[job_type])
