"""Move log: the database's record of a story: every move of every job, and all jobs.

`install` creates triggers on `jobs` (move_log.sql) before the story begins. `read` returns what
they wrote, and the jobs, events and counts, after all processes have stopped. admit/log.py adds
what was admitted when, effects.py what handlers wrote.
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row, tuple_row

from tests.stories import effects
from tests.stories.admit import log
from tests.stories.admit.log import AdmissionLog

TRIGGERS = Path(__file__).with_name("move_log.sql").read_text(encoding="utf-8")

HELD = frozenset({"claimed", "running"})
FINISHED = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class RowVersion:
    """One version of a job's row: its status, the worker that holds it, its attempts."""

    status: str
    worker: str | None
    attempts: int


@dataclass(frozen=True, slots=True)
class Move:
    """One move of one job; `before` is None for a new job, `after` is None for a deleted one."""

    job: str
    at: float  # on the monotonic clock of the history
    began: float  # its transaction, on the same clock
    xid: str
    job_type: str
    priority: int
    created_at: datetime
    max_attempts: int
    at_once: bool  # it joined the line at once: no `run_at`
    expires_at: float | None
    before: RowVersion | None
    after: RowVersion | None

    @property
    def lease(self) -> tuple[str, str | None, int]:
        """Whose attempt this move ended: job, worker, attempt."""
        assert self.before is not None
        return self.job, self.before.worker, self.before.attempts


@dataclass(frozen=True)
class MoveLog:
    """Everything that the database knows about a story."""

    moves: dict[str, list[Move]]  # by job, in the order they were made
    jobs: dict[str, dict[str, Any]]
    copies: dict[str, int]  # how many rows of `jobs` have this id
    tokens: dict[str, list[str]]  # token → ids of the jobs that carry it
    events: dict[str, list[int]]  # job → the numbers of its events
    counted: dict[tuple[str, str], int]  # (type, status) → jobs, by counting
    depth: dict[tuple[str, str], int]  # the same from the view queue_depth
    effects: effects.Effects = field(default_factory=dict[str, list[effects.Effect]])
    admission: AdmissionLog = field(default_factory=AdmissionLog)


def install(dsn: str) -> None:
    """Create the triggers. Prepare the days first: moving rows to their partition is not a move."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select howdah.prepare_days()")
        connection.execute(TRIGGERS.encode())
        effects.install(connection)
    log.install(dsn)


def read(dsn: str) -> MoveLog:
    """Read the moves and everything they are compared with, in one snapshot."""
    with psycopg.connect(dsn, row_factory=tuple_row) as connection:
        connection.execute("set transaction isolation level repeatable read")
        offset = time.monotonic() - time.time()
        moves: dict[str, list[Move]] = defaultdict(list)
        for row in connection.execute(
            "select id::text, extract(epoch from at)::float8, extract(epoch from began)::float8, "
            "extract(epoch from expires_at)::float8, xid::text, job_type, priority, "
            "created_at, max_attempts, at_once, before_status, before_worker, "
            "before_attempts, after_status, after_worker, after_attempts "
            "from move_log.moves order by nth"
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
        written = effects.read(connection)
        counted = _counts(
            connection, "select job_type, status, count(*) from howdah.jobs group by 1, 2"
        )
        depth = _counts(connection, "select job_type, status, jobs from howdah.queue_depth")
    return MoveLog(
        *(dict(moves), jobs, dict(copies), dict(tokens), dict(events), counted, depth),
        effects=written,
        admission=log.read(dsn, offset),
    )


def _move(row: tuple[Any, ...], offset: float) -> Move:
    job, at, began, expires_at, *columns = row[:10]
    versions = row[10:]
    before = RowVersion(*versions[:3]) if versions[0] is not None else None
    after = RowVersion(*versions[3:]) if versions[3] is not None else None
    return Move(
        *(job, at + offset, began + offset, *columns),
        expires_at=None if expires_at is None else expires_at + offset,
        before=before,
        after=after,
    )


def _append(moves: list[Move], move: Move) -> None:
    """Add a move; an INSERT right after a DELETE of the same transaction completes it."""
    if moves and move.before is None and moves[-1].after is None and moves[-1].xid == move.xid:
        moves[-1] = replace(moves[-1], after=move.after)
    else:
        moves.append(move)


def _counts(connection: psycopg.Connection[Any], sql: str) -> dict[tuple[str, str], int]:
    rows = connection.execute(sql.encode()).fetchall()
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for job_type, status, jobs in rows:
        counts[job_type, status] += int(jobs)
    return dict(counts)
