"""Trail: what the database says of a story: every move of every job, and how all jobs stand.

`lay` hangs triggers on the relation `jobs` (trail.sql) before the story begins; `follow` reads
what they wrote, and the jobs, events and counts, when everything has come to rest.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row, tuple_row

TRAIL = Path(__file__).with_name("trail.sql").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Stand:
    """How a job stood: its status, who held it, which attempt it was at."""

    status: str
    worker: str | None
    attempts: int


@dataclass(frozen=True, slots=True)
class Move:
    """One move of one job; `was` is None for a new one, `now` is None for one that vanished."""

    job: str
    at: float  # on the monotonic clock of the history
    xid: str
    job_type: str
    priority: int
    created_at: datetime
    max_attempts: int
    at_once: bool  # it stood in line without waiting for a time of its own
    was: Stand | None
    now: Stand | None

    @property
    def lease(self) -> tuple[str, str | None, int]:
        """Whose attempt this move ended: job, worker, attempt."""
        assert self.was is not None
        return self.job, self.was.worker, self.was.attempts


@dataclass(frozen=True)
class Trail:
    """All that the database knows of a story."""

    moves: dict[str, list[Move]]  # by job, in the order they were made
    jobs: dict[str, dict[str, Any]]
    copies: dict[str, int]  # how often each id stands in `jobs`
    tokens: dict[str, list[str]]  # token → ids of the jobs that carry it
    events: dict[str, list[int]]  # job → the numbers of its events
    counted: dict[tuple[str, str], int]  # (type, status) → jobs, by counting
    told: dict[tuple[str, str], int]  # the same as the view queue_depth tells it


def lay(dsn: str) -> None:
    """Begin the trail. Days are prepared first: carrying strays to their day is no move."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select howdah.prepare_days()")
        connection.execute(TRAIL.encode())


def follow(dsn: str) -> Trail:
    """Read the trail and everything it is compared with, in one snapshot."""
    with psycopg.connect(dsn, row_factory=tuple_row) as connection:
        connection.execute("set transaction isolation level repeatable read")
        offset = time.monotonic() - time.time()
        moves: dict[str, list[Move]] = defaultdict(list)
        for row in connection.execute(
            "select id::text, extract(epoch from at)::float8, xid::text, job_type, priority, "
            "created_at, max_attempts, at_once, was, was_worker, was_attempts, now, now_worker, "
            "now_attempts from trail.moves order by nth"
        ):
            _append(moves[row[0]], _move(row, offset))
        rows = connection.cursor(row_factory=dict_row).execute("select * from howdah.jobs")
        jobs: dict[str, dict[str, Any]] = {}
        copies: dict[str, int] = defaultdict(int)
        tokens: dict[str, list[str]] = defaultdict(list)
        for job in rows:
            id = str(job["id"])
            jobs[id] = job
            copies[id] += 1
            if token := job["data"].get("token"):
                tokens[token].append(id)
        events: dict[str, list[int]] = defaultdict(list)
        for id, number in connection.execute(
            "select job_id::text, number from howdah.job_events order by 1, 2"
        ):
            events[id].append(number)
        counted = _counts(
            connection, "select job_type, status, count(*) from howdah.jobs group by 1, 2"
        )
        told = _counts(connection, "select job_type, status, jobs from howdah.queue_depth")
    return Trail(dict(moves), jobs, dict(copies), dict(tokens), dict(events), counted, told)


def _move(row: tuple[Any, ...], offset: float) -> Move:
    job, at, *told = row[:8]
    stands = row[8:]
    was = Stand(*stands[:3]) if stands[0] is not None else None
    now = Stand(*stands[3:]) if stands[3] is not None else None
    return Move(job, float(at) + offset, *told, was=was, now=now)


def _append(moves: list[Move], move: Move) -> None:
    """Add a move; an INSERT right after a DELETE of the same transaction completes it."""
    if moves and move.was is None and moves[-1].now is None and moves[-1].xid == move.xid:
        moves[-1] = replace(moves[-1], now=move.now)
    else:
        moves.append(move)


def _counts(connection: psycopg.Connection[Any], sql: str) -> dict[tuple[str, str], int]:
    rows = connection.execute(sql.encode()).fetchall()
    found: dict[tuple[str, str], int] = defaultdict(int)
    for job_type, status, jobs in rows:
        found[job_type, status] += int(jobs)
    return dict(found)
