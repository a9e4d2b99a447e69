"""The verbs look their jobs up by id: they read what they move, and never the whole table.

A worker holds thousands of jobs and settles a few. Its plans were made by one of the worst teachers
there are: an empty table that was never analysed, or one that was analysed when its jobs had just
left it, pages and all, as on every quiet night.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import timedelta
from uuid import UUID

import pytest

from tests.plans.reading import Read, read_by
from tests.support import Claimed, Database, Session
from tests.support.databases import Databases

pytestmark = [pytest.mark.engine, pytest.mark.plan, pytest.mark.xdist_group("verbs")]

HELD = 5_000
SETTLED = 50

Act = Callable[[Session, list[Claimed]], object]

VERBS: dict[str, Act] = {
    "start": lambda db, claims: db.start(claims),
    "progress": lambda db, claims: db.progress(claims, 10),
    "emit": lambda db, claims: db.emit(claims, "x"),
    "beat": lambda db, claims: db.beat("worker", claims, timedelta(hours=1)),
    "complete": lambda db, claims: db.complete(claims),
    "fail": lambda db, claims: db.fail(claims),
    "retry": lambda db, claims: db.retry(claims),
    "release": lambda db, claims: db.release(claims),
    "hand_back": lambda db, claims: db.hand_back(claims),
    "cancel by its worker": lambda db, claims: db.cancel_held(claims),
    "cancel": lambda db, claims: db.cancel(*(claim.id for claim in claims)),
    "watch": lambda db, claims: db.rows("select howdah.watch(%s)", [c.id for c in claims]),
}


FILL = "insert into jobs_live (job_type) select 'mail' from generate_series(1, 50000)"
NEVER_ANALYSED: list[str] = []
JUST_EMPTIED = [FILL, "delete from jobs_live", "analyze jobs_live"]


@pytest.fixture(scope="module", params=[NEVER_ANALYSED, JUST_EMPTIED], ids=["new", "emptied"])
def early(databases: Databases, request: pytest.FixtureRequest) -> Generator[Session]:
    """A session whose plans were made on an empty table, now with much in it."""
    dsn = databases.create()
    db = Database(dsn)
    db.execute("alter table jobs_live set (autovacuum_enabled = off)")
    for statement in request.param:
        db.execute(statement)
    session = db.session()
    for act in VERBS.values():
        act(session, [])
    session.claim("mail")
    session.claim("mail", "other")
    session.recover_stale_jobs()
    session.promote()
    session.upkeep()
    db.execute(FILL)
    db.execute(
        "insert into jobs_live (job_type, run_at, ready_at) "
        "select 'mail', now() + interval '1 day', null from generate_series(1, 5000)"
    )
    session.beat("worker", silent_after=timedelta(hours=1))
    yield session
    db.close()
    databases.drop(dsn)


def held(session: Session) -> list[Claimed]:
    """Claim until the worker holds thousands; returns some of its jobs from the middle."""
    holds = session.value("select count(*) from jobs_live where worker_id = 'worker'")
    claims = session.claim("mail", batch=max(HELD - holds, 2 * SETTLED))
    return claims[-SETTLED:]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_reads_the_rows_it_moves_and_no_others(early: Session, verb: str) -> None:
    claims = held(early)
    read = read_by(early, lambda: VERBS[verb](early, claims))
    assert read.seq_scans == 0
    assert SETTLED <= read.rows <= 3 * SETTLED


@pytest.mark.parametrize("types", [["mail"], ["mail", "other"]], ids=["one type", "two types"])
def test_a_claim_reads_what_it_takes(early: Session, types: list[str]) -> None:
    early.enqueue("other")
    read = read_by(early, lambda: early.claim(*types, batch=SETTLED))
    assert read.seq_scans == 0
    assert SETTLED <= read.rows <= 6 * SETTLED  # seen, locked, moved


def test_recover_reads_nothing_of_workers_that_live(early: Session) -> None:
    held(early)
    assert read_by(early, early.recover_stale_jobs) <= Read(0, 10)


def test_recover_reads_what_it_takes(early: Session) -> None:
    early.claim("mail", worker="gone", batch=SETTLED)
    early.clock.advance(timedelta(minutes=10))
    read = read_by(early, early.recover_stale_jobs)
    early.clock.advance(-timedelta(minutes=10))
    assert read.seq_scans == 0
    assert SETTLED <= read.rows <= 5 * SETTLED  # who holds what, by id, moved, settled


def test_promote_reads_what_is_due(early: Session) -> None:
    assert read_by(early, early.promote) == Read(0, 0)
    for _ in range(SETTLED):
        early.enqueue("mail", delay=timedelta(minutes=1))
    early.clock.advance(timedelta(minutes=2))
    moved: list[UUID] = []  # with those that other tests have handed back
    read = read_by(early, lambda: moved.extend(early.promote()))
    early.clock.advance(-timedelta(minutes=2))
    assert read.seq_scans == 0
    assert SETTLED <= len(moved) <= read.rows <= 3 * len(moved)


def test_promote_reads_no_more_than_it_was_asked_for(early: Session) -> None:
    with early.rolled_back():
        early.execute(
            "insert into jobs_live (job_type, run_at, ready_at) "
            "select 'mail', now() + n * interval '1 microsecond', null "
            "from generate_series(1, 5000) as n"
        )
        early.clock.advance(timedelta(minutes=1))
        read = read_by(early, lambda: early.promote(SETTLED))
        early.clock.advance(-timedelta(minutes=1))
    assert read.seq_scans == 0
    assert SETTLED <= read.rows <= 3 * SETTLED


def test_upkeep_reads_next_to_nothing(early: Session) -> None:
    early.promote()
    assert read_by(early, early.upkeep) <= Read(0, 10)


def test_a_plain_recover_leaves_the_history_alone(early: Session) -> None:
    plan = "\n".join(
        early.column(
            "explain update jobs set status='pending', worker_id=null, claimed_at=null "
            "where status in ('claimed','running') "
            "and claimed_at < now() - interval '1 hour' and attempts < max_attempts"
        )
    )
    assert "jobs_live" in plan
    assert "jobs_finished" not in plan
