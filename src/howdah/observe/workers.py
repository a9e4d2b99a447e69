"""Workers: which workers there are, how each one is, and what it runs now.

In SQL  sql/80_observe/workers_now.sql

    workers          every worker with its first jobs, for people
    worker_health    every worker that beats, without its jobs, for programs
    live_workers     the live ones alone, from the table of beats: cheap enough for every refresh
    beating_workers  alive or silent, and whether they hold a job: for the doctor

A foreign worker never beats. `workers` lists it too, because of the jobs it holds. What a worker
writes about itself (`info`) is JSON of unknown origin: values of a wrong type are ignored.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast
from uuid import UUID

import asyncpg
import msgspec

from howdah import payload
from howdah.states import State
from howdah.store import Store, query

SHOWN = 20  # jobs of one worker
_WORKERS = "select * from howdah.workers_now($1)"


class Attempt(msgspec.Struct, frozen=True):
    """A job that a worker holds."""

    id: UUID
    job_type: str
    status: State
    attempt: int
    progress: int
    current_stage: str | None
    claimed_at: datetime | None
    started_at: datetime | None


class HeldUp(msgspec.Struct, frozen=True):
    """How long no thread of a worker could run, and the types that may have held the GIL."""

    seconds: float
    types: list[str]
    now: bool = False  # whether it still lasts


class WorkerNow(msgspec.Struct, frozen=True, kw_only=True):
    """A worker and what it does."""

    id: str
    beats: bool  # false: a foreign worker, known only by the jobs it holds
    alive: bool
    started_at: datetime | None
    beat_at: datetime | None
    silent_for: timedelta | None
    draining: bool  # it stops, or was asked to
    holds: int
    info: dict[str, Any]  # host, pid, version, slots, running, job_types, leaving
    attempts: list[Attempt]  # the jobs that it began first, SHOWN at most


class WorkerHealth(NamedTuple):
    """How a worker is, by its beats."""

    id: str
    started_at: datetime
    beat_at: datetime
    silent_for: timedelta
    alive: bool
    holds: int
    info: dict[str, Any]


class LiveWorker(msgspec.Struct, frozen=True):
    """A live worker, as its last beat described it."""

    id: str
    job_types: list[str]
    slots: int
    busy: int
    threads: int = 0  # how many of its slots may run in threads
    threads_busy: int = 0
    thread_types: tuple[str, ...] = ()  # the types that run in threads

    def slots_for(self, job_type: str) -> tuple[int, int]:
        """Return how many jobs of a type it may run at once, and how many of these slots are busy.

        Jobs that run in threads can use the threads only, and none of them if no slot is free.
        """
        if job_type not in self.thread_types:
            return self.slots, min(self.busy, self.slots)
        full = self.busy >= self.slots
        return self.threads, self.threads if full else min(self.threads_busy, self.threads)


async def workers(
    store: Store, *, shown: int = SHOWN, within: timedelta = query.WITHIN
) -> list[WorkerNow]:
    """Return the workers, the live ones first, each with at most `shown` of its jobs."""
    return [_worker(row) for row in await query.fetch(store, within, _WORKERS, shown)]


async def worker_health(store: Store) -> list[WorkerHealth]:
    """Return the workers that beat, the live ones first."""
    rows = [row for row in await store.fetch(_WORKERS, 0) if row["beats"]]
    return [
        WorkerHealth(
            row["id"],
            row["started_at"],
            row["beat_at"],
            row["silent_for"],
            row["alive"],
            row["holds"],
            read_info(row["info"]),
        )
        for row in rows
    ]


class BeatingWorker(NamedTuple):
    """A worker that beats: whether it is alive, and whether it holds a job."""

    id: str
    alive: bool
    holds: bool


async def beating_workers(store: Store, within: timedelta) -> list[BeatingWorker]:
    """Return the workers that beat. It counts no jobs, so it costs less than `workers`."""
    rows = await query.fetch(
        store,
        within,
        "select w.id, w.beat_at >= howdah.clock() - w.silent_after, "
        "exists (select from howdah.jobs_live as j where j.held_by = w.id) "
        "from howdah.workers as w order by 1",
    )
    return [BeatingWorker(*row) for row in rows]


async def live_workers(store: Store, within: timedelta) -> list[LiveWorker]:
    """Return the live workers and the job types of each."""
    rows = await query.fetch(
        store,
        within,
        "select id, info from howdah.workers where beat_at >= howdah.clock() - silent_after",
    )
    return [_live_worker(id, read_info(info)) for id, info in rows]


def read_info(text: str | None) -> dict[str, Any]:
    """Read what a worker wrote about itself; empty if it is not an object."""
    info: Any = payload.decode(text)
    return cast("dict[str, Any]", info) if isinstance(info, dict) else {}


def read_held_up(text: str | None) -> HeldUp | None:
    """Read how long a worker was held up; None if it does not say, or not in our format."""
    try:
        return msgspec.json.decode(text or "", type=HeldUp)
    except msgspec.DecodeError:
        return None


def _worker(row: asyncpg.Record) -> WorkerNow:
    info = read_info(row["info"])
    return WorkerNow(
        id=row["id"],
        beats=row["beats"],
        alive=row["alive"],
        started_at=row["started_at"],
        beat_at=row["beat_at"],
        silent_for=row["silent_for"],
        draining=row["draining"] or info.get("leaving") is True,
        holds=row["holds"],
        info=info,
        attempts=msgspec.json.decode(row["attempts"], type=list[Attempt]),
    )


def _live_worker(id: str, info: dict[str, Any]) -> LiveWorker:
    return LiveWorker(
        id,
        _names(info.get("job_types")),
        _number(info.get("slots")),
        _number(info.get("running")),
        _number(info.get("threads")),
        _number(info.get("threads_busy")),
        tuple(_names(info.get("thread_types"))),
    )


def _names(value: Any) -> list[str]:
    return [str(name) for name in cast("list[Any]", value)] if isinstance(value, list) else []


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
