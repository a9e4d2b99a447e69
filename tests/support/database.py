"""Database: the SQL engine as plain calls over psycopg, without howdah's Python code.

`db.enqueue("mail")`, `db.claim("mail")` and `db.complete(claims)` each call one SQL function. Each
call is a transaction of its own, except inside `db.transaction()`. `db.session()` opens a second
connection to the same database.

`db.clock` moves the engine's clock for all sessions of the test. `wait_until_blocked` waits until
a session waits for a lock.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, LiteralString, NamedTuple, cast
from uuid import UUID

import psycopg
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from howdah.states import State
from tests.support.waiting import wait_until

GUARD = Path(__file__).with_name("guard.sql").read_text(encoding="utf-8")

Row = dict[str, Any]


class Claimed(NamedTuple):
    """A job as `claim` handed it out; its first three fields are the lease."""

    id: UUID
    worker_id: str
    attempts: int
    job_type: str = ""
    priority: int = 100
    data: dict[str, Any] | None = None

    def by(self, worker: str) -> Claimed:
        return self._replace(worker_id=worker)


Claims = Sequence[Claimed]


class Clock:
    """The engine's clock, the same for all sessions of a story."""

    def __init__(self) -> None:
        self.offset = timedelta()
        self._sessions: list[Session] = []

    def follow(self, session: Session) -> None:
        self._sessions.append(session)
        self._set(session)

    def forget(self, session: Session) -> None:
        self._sessions.remove(session)

    def advance(self, by: timedelta) -> None:
        self.offset += by
        for session in self._sessions:
            self._set(session)

    def _set(self, session: Session) -> None:
        session.execute(
            "select set_config('howdah.clock_offset', %s, false)",
            f"{self.offset.total_seconds()} seconds",
        )


class Session:
    """One connection that speaks to the engine."""

    def __init__(self, dsn: str, clock: Clock) -> None:
        self.dsn = dsn
        self.clock = clock
        self.connection = psycopg.Connection[Row].connect(
            dsn, autocommit=True, row_factory=dict_row
        )
        self.connection.execute("set search_path = howdah, public; set statement_timeout = '30s'")
        self.pid = self.connection.info.backend_pid
        clock.follow(self)

    def close(self) -> None:
        self.clock.forget(self)
        self.connection.close()

    # ── plain SQL ──

    def execute(self, sql: str, *args: object) -> int:
        """Send a statement; returns how many rows it touched."""
        return self.connection.execute(cast(LiteralString, sql), args or None).rowcount

    def rows(self, sql: str, *args: object) -> list[Row]:
        return self.connection.execute(cast(LiteralString, sql), args or None).fetchall()

    def column(self, sql: str, *args: object) -> list[Any]:
        return [next(iter(row.values())) for row in self.rows(sql, *args)]

    def value(self, sql: str, *args: object) -> Any:
        (value,) = self.column(sql, *args)
        return value

    def plain(self, sql: str, *args: object) -> int:
        """Send a statement word for word, with `$1` and not `%s`, as any client may."""
        with psycopg.RawCursor(self.connection) as cursor:
            return cursor.execute(cast(LiteralString, sql), args).rowcount

    @contextmanager
    def transaction(self) -> Generator[None]:
        with self.connection.transaction():
            yield

    @contextmanager
    def rolled_back(self) -> Generator[None]:
        """A transaction that changes its mind at the end."""
        with self.connection.transaction(force_rollback=True):
            yield

    # ── enqueue ──

    def enqueue(
        self,
        job_type: str,
        data: dict[str, Any] | None = None,
        *,
        priority: int = 100,
        run_at: datetime | None = None,
        delay: timedelta | None = None,
        max_attempts: int = 3,
        id: UUID | None = None,
        key: str | None = None,
    ) -> UUID:
        return self.value(
            "select howdah.enqueue(%s::text, %s, %s::int, %s, %s::int, %s, %s, p_key => %s::text)",
            job_type,
            Jsonb(data or {}),
            priority,
            run_at,
            max_attempts,
            id,
            delay,
            key,
        )

    def enqueue_many(self, drafts: Sequence[dict[str, Any]]) -> list[UUID]:
        return self.column("select howdah.enqueue_many(%s)", Jsonb(drafts))

    # ── admit ──

    def admit(self) -> int:
        """Let in what may go; returns how many jobs were moved on."""
        return sum(row["admitted"] for row in self.rows("select * from howdah.admit()"))

    def admit_all(self) -> None:
        """Admit until nothing is requested."""
        wait_until(
            lambda: (
                self.admit() == 0
                and not self.value("select exists (select from admission_requests)")
            ),
            "nothing is requested",
        )

    def admitted(self) -> list[UUID]:
        """Return the jobs that hold all their slots, in the order of enqueueing."""
        return self.column("select id from jobs where admission = 'admitted' order by arrival")

    def held_in_runs(self) -> list[Claimed]:
        """Return the jobs that a worker holds behind another one, in the order of enqueueing."""
        held = "select * from jobs_live where worker_id is not null and ready_at is null"
        return claims_of(self.rows(f"{held} order by arrival"))

    def holds(self, claim: Claimed) -> bool:
        """Whether the lease of this claim is valid."""
        lease = claim.id, claim.worker_id, claim.attempts
        held = "select from jobs_live where id = %s and worker_id = %s and attempts = %s"
        return bool(self.rows(held, *lease))

    def admission_of(self, id: UUID) -> str | None:
        return self.job(id)["admission"]

    # ── claim, run ──

    def claim(self, *job_types: str, worker: str = "worker", batch: int = 10) -> list[Claimed]:
        return claims_of(
            self.rows(
                "select * from howdah.claim_job_batch(%s::text, %s::text[], %s::int)",
                worker,
                list(job_types),
                batch,
            )
        )

    def claim_run(self, claims: Claims, most: int = 10) -> list[Claimed]:
        """Claim what follows these jobs in their keys, `most` per job."""
        worker, ids, attempts = lease_arguments(claims)
        return [
            claim.by(worker)
            for claim in claims_of(
                self.rows(
                    "select *, null as worker_id from howdah.claim_run(%s, %s, %s, %s)",
                    *(worker, ids, attempts, [most] * len(claims)),
                )
            )
        ]

    def start(self, claims: Claims, ran: timedelta | None = None) -> set[UUID]:
        return self._verb("start", claims, "%s::interval[]", [ran] * len(claims))

    def progress(
        self, claims: Claims, percent: int | None = None, stage: str | None = None
    ) -> set[UUID]:
        return self._verb(
            "progress",
            claims,
            "%s::int[], %s::text[]",
            [percent] * len(claims),
            [stage] * len(claims),
        )

    def emit(self, claims: Claims, kind: str, data: object = None) -> set[UUID]:
        return self._verb(
            "emit",
            claims,
            "%s::text[], %s::jsonb[]",
            [kind] * len(claims),
            [None if data is None else Jsonb(data)] * len(claims),
        )

    def beat(
        self,
        worker: str = "worker",
        claims: Claims = (),
        silent_after: timedelta = timedelta(seconds=15),
    ) -> set[UUID]:
        """Beat for a worker; returns the jobs that it has lost."""
        return set(
            self.column(
                "select howdah.beat(%s, %s::uuid[], %s::int[], %s)",
                worker,
                [claim.id for claim in claims],
                [claim.attempts for claim in claims],
                silent_after,
            )
        )

    def deregister(self, worker: str) -> None:
        self.execute("select howdah.deregister(%s)", worker)

    # ── settle ──

    def complete(
        self, claims: Claims, result: object = None, ran: timedelta | None = None
    ) -> set[UUID]:
        return self._verb(
            "complete",
            claims,
            "%s::jsonb[], %s::interval[]",
            [None if result is None else Jsonb(result)] * len(claims),
            [ran] * len(claims),
        )

    def complete_and_claim(
        self, claims: Claims, *job_types: str
    ) -> tuple[set[UUID], list[Claimed]]:
        """Complete, and claim what gets the slots; returns the stale ids, and the claims."""
        rows = self.rows(
            "select * from howdah.complete_and_claim("
            "%s, %s::uuid[], %s::int[], null, null, %s::text[])",
            claims[0].worker_id,
            [claim.id for claim in claims],
            [claim.attempts for claim in claims],
            list(job_types),
        )
        stale = {row["id"] for row in rows if row["status"] is None}
        return stale, claims_of([row for row in rows if row["status"] is not None])

    def fail(
        self, claims: Claims, error: str | None = "it broke", traceback: str | None = None
    ) -> set[UUID]:
        return self._verb(
            "fail",
            claims,
            "%s::text[], %s::text[]",
            [error] * len(claims),
            [traceback] * len(claims),
        )

    def retry(
        self,
        claims: Claims,
        error: str = "it broke",
        delay: timedelta | None = None,
        traceback: str | None = None,
    ) -> dict[UUID, State]:
        rows = self.rows(
            "select id, status from howdah.retry(%s, %s::uuid[], %s::int[], "
            "%s::text[], %s::interval[], %s::text[])",
            *lease_arguments(claims),
            [error] * len(claims),
            [delay] * len(claims),
            [traceback] * len(claims),
        )
        return {row["id"]: State(row["status"]) for row in rows}

    def release(self, claims: Claims, delay: timedelta | None = None) -> set[UUID]:
        return self._verb("release", claims, "%s::interval[]", [delay] * len(claims))

    def hand_back(
        self, claims: Claims, error: str = "missing field", signature: str | None = None
    ) -> set[UUID]:
        values = [error] * len(claims), [signature] * len(claims)
        more = "%s::text[], %s::text[]"
        worker, ids, attempts = lease_arguments(claims)
        rows = self.rows(
            f"select id from howdah.hand_back(%s, %s, %s, {more})", worker, ids, attempts, *values
        )
        return {row["id"] for row in rows}

    def cancel(self, *ids: UUID, reason: str = "cancelled") -> set[UUID]:
        return set(self.column("select howdah.cancel(%s::uuid[], %s::text)", list(ids), reason))

    def cancel_held(self, claims: Claims, reason: str = "its handler cancelled it") -> set[UUID]:
        return self._verb("cancel", claims, "%s::text[]", [reason] * len(claims))

    def _verb(self, verb: str, claims: Claims, more: str, *values: object) -> set[UUID]:
        return set(
            self.column(
                f"select howdah.{verb}(%s::text, %s::uuid[], %s::int[], {more})",
                *lease_arguments(claims),
                *values,
            )
        )

    # ── upkeep ──

    def recover_stale_jobs(self, timeout: timedelta = timedelta(minutes=5)) -> dict[UUID, State]:
        rows = self.rows("select id, status from howdah.recover_stale_jobs(%s)", timeout)
        return {row["id"]: State(row["status"]) for row in rows}

    def promote(self, limit: int = 1000) -> set[UUID]:
        return set(self.column("select howdah.promote(%s)", limit))

    def expire(self, limit: int = 1000) -> set[UUID]:
        return set(self.column("select howdah.expire(%s)", limit))

    def requeue(self, *ids: UUID, attempts: int = 1) -> set[UUID]:
        return set(self.column("select howdah.requeue(%s::uuid[], %s)", list(ids), attempts))

    def prune(self, keep: timedelta | None = None) -> list[str]:
        return self.column("select howdah.prune(%s)", keep)

    def prepare_days(self, ahead: int = 3) -> list[str]:
        return self.column("select howdah.prepare_days(%s)", ahead)

    def upkeep(self) -> list[Row]:
        return self.rows("select * from howdah.upkeep()")

    # ── observe ──

    def job(self, id: UUID) -> Row:
        (row,) = self.rows("select * from jobs where id = %s", id)
        return row

    def state_of(self, id: UUID) -> State:
        return State(self.job(id)["status"])

    def depth(self) -> dict[tuple[str, State], int]:
        """Return the counts of queue_depth, by type and state."""
        rows = self.rows("select job_type, status, jobs from queue_depth")
        counts = {(row["job_type"], State(row["status"])): row["jobs"] for row in rows}
        assert len(counts) == len(rows), f"queue_depth names a pair twice: {rows}"
        return counts

    def counted(self) -> dict[tuple[str, State], int]:
        """Count the rows of the tables, by type and state."""
        rows = self.rows("select job_type, status, count(*) as jobs from jobs group by 1, 2")
        return {(row["job_type"], State(row["status"])): row["jobs"] for row in rows}

    # ── steps and signals ──

    def save_step(self, claim: Claimed, name: str = "a", result: object = None) -> bool:
        """Store a step that has ended; returns whether the lease was valid."""
        return self._save_step(claim, "step", name, result, None)

    def sleep(self, claim: Claimed, lasts: timedelta, name: str = "sleep") -> bool:
        """Store a sleep and put the job back; returns whether the lease was valid."""
        self._save_step(claim, "sleep", name, None, lasts)
        return self.suspend(claim, ("sleep", name, 1))

    def _save_step(
        self, claim: Claimed, kind: str, name: str, result: object, lasts: timedelta | None
    ) -> bool:
        worker, ids, attempts = lease_arguments([claim])
        saved = self.column(
            "select save_steps(%s, %s, %s, %s, %s, '{1}', null, %s::jsonb[], null, %s::interval[])",
            *(worker, ids, attempts, [kind], [name], [json.dumps(result)], [lasts]),
        )
        return saved == [1]

    def wait_for(
        self, claim: Claimed, name: str, number: int = 1, timeout: timedelta | None = None
    ) -> Row | None:
        """Take a signal or begin to wait for it; None for a stale lease."""
        worker, ids, attempts = lease_arguments([claim])
        rows = self.rows(
            "select * from await_signals(%s, %s, %s, %s, %s, %s::interval[])",
            *(worker, ids, attempts, [name], [number], [timeout]),
        )
        return rows[0] if rows else None

    def suspend(self, claim: Claimed, *blocked: tuple[str, str, int]) -> bool:
        """Put a job back until it can go on; returns whether the lease was valid."""
        worker, ids, attempts = lease_arguments([claim])
        moved = self.column(
            "select suspend(%s, %s, %s, %s::jsonb[])", worker, ids, attempts, [json.dumps(blocked)]
        )
        return moved == ids

    def signal(self, id: UUID, name: str, data: object = None) -> bool:
        return self.value("select howdah.signal(%s, %s, %s::jsonb)", id, name, json.dumps(data))

    # ── other sessions ──

    def blocked_by_a_lock(self, other: Session) -> bool:
        """Return whether another session waits for a lock now."""
        return bool(
            self.value(
                "select exists (select from pg_stat_activity "
                "where pid = %s and wait_event_type = 'Lock')",
                other.pid,
            )
        )

    def wait_until_blocked(self, *others: Session) -> None:
        """Return as soon as each of the others waits for a lock."""
        wait_until(
            lambda: all(self.blocked_by_a_lock(other) for other in others),
            "each session waits for a lock",
            pause=0.002,
        )


class Database(Session):
    """A session on a database that only this test uses."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn, Clock())
        self._others: list[Session] = []

    def session(self) -> Session:
        """Open another session with the same clock."""
        other = Session(self.dsn, self.clock)
        self._others.append(other)
        return other

    def close(self) -> None:
        for other in self._others:
            other.close()
        super().close()


def claims_of(rows: Iterable[Row]) -> list[Claimed]:
    return [
        Claimed(
            row["id"],
            row["worker_id"],
            row["attempts"],
            row["job_type"],
            row["priority"],
            row["data"],
        )
        for row in rows
    ]


def lease_arguments(claims: Claims) -> tuple[str, list[UUID], list[int]]:
    """Return worker, ids and attempts: all claims of one call are one worker's."""
    workers = {claim.worker_id for claim in claims}
    assert len(workers) <= 1, f"one worker per call, not {workers}"
    return (
        next(iter(workers), "no worker"),
        [claim.id for claim in claims],
        [claim.attempts for claim in claims],
    )
