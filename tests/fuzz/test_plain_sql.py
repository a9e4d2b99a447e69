"""Invalid values by plain SQL, in every column of jobs: refused with a reason, or a normal job.

Each example is a few INSERT and UPDATE statements with values at and beyond every limit. What is
accepted must do no harm: a worker then works until nothing is left, upkeep runs, everything can be
listed, the counts are right, and jobs that waited are still run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah import JobContext, Queue
from howdah.states import State
from tests.cli.support import Cli
from tests.fuzz.budget import examples
from tests.support import Database
from tests.support.databases import Databases

MINE = "fuzzed"

INTEGERS = [*("0", "1", "-1", "100", "101", "2147483647", "-2147483648", "2147483648", "x")]
TEXTS = ["", " ", "x" * 200, "x" * 201, "x" * 100_000, "'; drop table howdah.jobs; --", "\\", "%s"]
INSTANTS = [
    *("now", "infinity", "-infinity", "epoch", "yesterday", "tomorrow", "2100-01-01Z", "never"),
    *("0001-01-01Z", "0002-01-01Z", "4713-01-01 BC", "9998-12-31Z", "9999-12-31Z"),
    *("10000-01-01Z", "294276-12-31Z"),
]
DOCUMENTS = [
    *("{}", "[]", "null", "1", '"text"', "{", "[1]", '[{"attempt": 1}]', '{"a": {"a": []}}'),
    *('{"a": 1e400}', '{"a": 1e5000}', '{"a": -0.0}', '{"a": 123456789012345678901234567890}'),
    *('{"": "\\u0000"}', '{"a": "\\ud800"}', '{"a": "' + "x" * 300_000 + '"}'),
    *("[" * 500 + "]" * 500, '{"a": ' + "[" * 5000 + "]" * 5000 + "}"),
]
DAYS = [
    *("today", "yesterday", "tomorrow", "infinity", "-infinity", "epoch", "4713-01-01 BC"),
    *("0044-03-15 BC", "0044-03-15", "9998-12-31", "9999-12-31", "10000-01-01"),
    *("5874897-12-31", "someday"),
]
IDS = [
    *("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    *("00000000-0000-0000-0000-000000000001", "1", ""),
]
STATES = [*State, "", "PENDING", "done"]

EDGES: dict[str, list[str]] = {
    "id": IDS,
    "job_type": [MINE, "other", "\x07", "a\u0085b", "\u202e", *TEXTS],
    "priority": INTEGERS,
    "status": [*map(str, STATES)],
    "data": DOCUMENTS,
    "progress": INTEGERS,
    "current_stage": TEXTS,
    "events_count": INTEGERS,
    "worker_id": TEXTS,
    "held_by": TEXTS,
    "claimed_at": INSTANTS,
    "created_at": INSTANTS,
    "started_at": INSTANTS,
    "completed_at": INSTANTS,
    "attempts": INTEGERS,
    "max_attempts": INTEGERS,
    "last_error": TEXTS,
    "run_at": INSTANTS,
    "ready_at": INSTANTS,
    "expires_at": INSTANTS,
    "result": DOCUMENTS,
    "errors": DOCUMENTS,
    "watched": ["true", "false", "maybe"],
    "trace": ["", "x", "00-" + "f" * 32 + "-" + "f" * 16 + "-01", "é" * 200, "x" * 201],
    "unique_key": TEXTS,
    "unique_until": ["started", "ended", "time", "soon", ""],
    "key": TEXTS,
    "unread_since": INSTANTS,
    "finished_on": DAYS,
}

# Where a job stands in its admission: the engine writes these, and no role may.
OF_ADMISSION = {"limited_by", "admission", "arrival"}

_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
_more: dict[str, st.SearchStrategy[str]] = {
    "id": st.uuids().map(str),
    "job_type": st.just(MINE),  # most jobs are for the worker that runs afterwards
    "status": st.sampled_from([*map(str, State)]),
    **dict.fromkeys(("current_stage", "worker_id", "last_error"), _text),
    **dict.fromkeys(("priority", "attempts", "max_attempts"), st.integers(-5, 5).map(str)),
}
COLUMNS = {
    name: _more[name] | st.sampled_from(edges) if name in _more else st.sampled_from(edges)
    for name, edges in EDGES.items()
}


class Plain(NamedTuple):
    """An INSERT, or with `nth` an UPDATE of the nth job."""

    values: dict[str, str | None]
    nth: int | None = None

    def send(self, db: Database) -> None:
        names = list(self.values)
        if self.nth is None:
            holes = ", ".join(["%s"] * len(names))
            db.execute(
                f"insert into jobs ({', '.join(names)}) values ({holes})", *self.values.values()
            )
            return
        known = db.column("select id from jobs order by id, status")
        if known:
            sets = ", ".join(f"{name} = %s" for name in names)
            id: UUID = known[self.nth % len(known)]
            db.execute(f"update jobs set {sets} where id = %s", *self.values.values(), id)


@st.composite
def statements(draw: st.DrawFn) -> Plain:
    update = draw(st.booleans())
    names = draw(st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=5, unique=True))
    values: dict[str, str | None] = {} if update else {"job_type": MINE}
    for name in names:
        values[name] = draw(COLUMNS[name]) if draw(st.integers(0, 9)) else None
    return Plain(values, draw(st.integers(0, 9)) if update else None)


class World:
    """A database, a queue on it, and its event loop."""

    def __init__(self, dsn: str) -> None:
        self.db = Database(dsn)
        self.loop = asyncio.Runner()
        self.queue = Queue(dsn)
        self.cli = Cli(dsn)

        @self.queue.job(name=MINE)
        async def fuzzed(ctx: JobContext, a: Any = None) -> Any:
            await ctx.progress(50, "half")
            await ctx.emit("seen", a)
            return a

    def close(self) -> None:
        self.loop.run(self.queue.close())
        self.loop.close()
        self.db.close()

    def reset(self) -> None:
        self.db.execute("set session_replication_role = replica")  # no triggers
        self.db.execute("truncate jobs, job_events, finished_counts, workers")
        self.db.execute("set session_replication_role = origin")

    def work(self) -> None:
        """Run a worker until no job is left; raises if the worker failed."""

        async def until_idle() -> None:
            async with asyncio.timeout(20), self.queue.worker(concurrency=10) as worker:
                await worker.run_until_idle()

        self.loop.run(until_idle())

    def query_all(self) -> None:
        """Run every query that a user can make."""

        async def read() -> None:
            for job in await self.queue.jobs(limit=1000):
                await self.queue.get(job.id)
            await self.queue.counts()
            await self.queue.workers()

        self.loop.run(read())
        self.cli.ok("jobs")
        self.cli.ok("stats")
        for id in self.db.column("select id from jobs limit 3"):
            self.cli.ok("show", id)


@pytest.fixture(scope="module")
def world(databases: Databases) -> Generator[World]:
    dsn = databases.create()
    created = World(dsn)
    yield created
    created.close()
    databases.drop(dsn)


# Errors that refuse a value: a wrong type, a violated constraint, or a size limit.
FOR_THE_VALUE = ("22", "23", "54", "HW001", "HW007")


def send(db: Database, statement: Plain) -> None:
    """Send a statement; a refusal must name the invalid value in a message."""
    refusal: psycopg.Error | None = None
    try:
        statement.send(db)
    except psycopg.Error as error:
        refusal = error
    if refusal is not None:
        assert (refusal.sqlstate or "").startswith(FOR_THE_VALUE), (refusal.sqlstate, refusal)
        assert str(refusal).strip()


def test_every_column_has_edge_values(world: World) -> None:
    columns = world.db.column(
        "select attname::text from pg_attribute where attrelid = 'howdah.jobs'::regclass "
        "and attnum > 0 and not attisdropped"
    )
    assert set(columns) == set(EDGES) | OF_ADMISSION


@pytest.mark.parametrize("column", list(EDGES))
def test_every_edge_value_of_every_column_is_refused_or_handled(world: World, column: str) -> None:
    world.reset()
    lives: list[dict[str, str | None]] = [
        {},
        {"status": "running", "worker_id": "somebody", "claimed_at": "now", "attempts": "1"},
        {"status": "failed", "attempts": "3"},
    ]
    for value in EDGES[column]:
        for life in lives:
            send(world.db, Plain({"job_type": MINE, **life, column: value}))
        send(world.db, Plain({column: value}, nth=0))
    check_that_the_queue_still_works(world)


@given(st.lists(statements(), min_size=1, max_size=8))
@examples(30)
def test_invalid_values_are_refused_with_a_message_or_handled(
    world: World, statements: list[Plain]
) -> None:
    world.reset()
    for statement in statements:
        send(world.db, statement)
    check_that_the_queue_still_works(world)


def check_that_the_queue_still_works(world: World) -> None:
    db = world.db
    honest = db.enqueue(MINE, {"a": 1}, priority=-5)
    db.upkeep()  # jobs held by unknown workers are recovered first
    world.work()
    world.query_all()
    db.prepare_days()
    db.rows("select * from howdah.compact_counts()")
    assert db.state_of(honest) is State.COMPLETED, "a valid job was blocked by invalid ones"
    stuck = db.rows(
        "select id, status, ready_at, run_at from jobs_live as j where job_type = %s "
        "and worker_id is null and (run_at is null or run_at <= now()) "
        "and not exists (select from jobs_live as holder "  # it waits for the slot of its key
        "where holder.key = j.key and holder.worker_id is not null)",
        MINE,
    )
    assert stuck == [], "jobs are due and free, but were not run"
    depth = {pair: jobs for pair, jobs in db.depth().items() if jobs}
    assert depth == db.counted()
    assert db.value("select count(*) from jobs where progress not between 0 and 100") == 0
    db.execute("select howdah.recover_stale_jobs('1 second')")
    everything = db.column("select id from jobs")
    db.cancel(*everything)
    db.requeue(*everything)
    db.cancel(*everything)
    assert db.value("select count(*) from jobs_live") == 0, "a job that cannot even be cancelled"
    assert {pair: jobs for pair, jobs in db.depth().items() if jobs} == db.counted()
    db.prune()
