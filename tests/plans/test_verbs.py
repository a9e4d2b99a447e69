"""The verbs find their jobs by id: they read the rows they move, and never the whole table.

A worker holds thousands of jobs and settles a few. Its plans were made under bad conditions: on an
empty table that was never analysed, or on one that was analysed just after its jobs had left.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import timedelta
from uuid import UUID

import pytest

from tests.plans.explain import Read, read_by
from tests.support import Claimed, Database, Session
from tests.support.databases import Databases

pytestmark = [pytest.mark.engine, pytest.mark.plan, pytest.mark.xdist_group("verbs")]

HELD = 5_000
SETTLED = 50

CallVerb = Callable[[Session, list[Claimed]], object]

VERBS: dict[str, CallVerb] = {
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


def unique(session: Session, key: str) -> UUID:
    return session.value("select howdah.enqueue('mail', p_unique_key => %s)", key)


@pytest.fixture(scope="module", params=[NEVER_ANALYSED, JUST_EMPTIED], ids=["new", "emptied"])
def early_session(databases: Databases, request: pytest.FixtureRequest) -> Generator[Session]:
    """A session whose plans were made on an empty table, which is full now."""
    dsn = databases.create()
    db = Database(dsn)
    db.execute("alter table jobs_live set (autovacuum_enabled = off)")
    for statement in request.param:
        db.execute(statement)
    session = db.session()
    for call_verb in VERBS.values():
        call_verb(session, [])
    session.claim("mail")
    session.claim("mail", "other")
    session.recover_stale_jobs()
    session.promote()
    session.expire()
    session.cancel(unique(session, "early"), unique(session, "early"))
    session.upkeep()
    db.execute(FILL)
    db.execute(
        "insert into unique_keys (unique_key, job_type, job_id) "
        "select 'key ' || n, 'mail', new_id() from generate_series(1, 50000) as n"
    )
    db.execute(
        "insert into jobs_live (job_type, run_at, ready_at) "
        "select 'mail', now() + interval '1 day', null from generate_series(1, 5000)"
    )
    session.beat("worker", silent_after=timedelta(hours=1))
    yield session
    db.close()
    databases.drop(dsn)


def claim_some(session: Session) -> list[Claimed]:
    """Claim until the worker holds thousands of jobs; return some of them."""
    holds = session.value("select count(*) from jobs_live where worker_id = 'worker'")
    claims = session.claim("mail", batch=max(HELD - holds, 2 * SETTLED))
    return claims[-SETTLED:]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_reads_the_rows_it_moves_and_no_others(early_session: Session, verb: str) -> None:
    claims = claim_some(early_session)
    read = read_by(early_session, lambda: VERBS[verb](early_session, claims))
    assert read.seq_scans == 0
    assert SETTLED <= read.rows <= 3 * SETTLED


@pytest.mark.parametrize("types", [["mail"], ["mail", "other"]], ids=["one type", "two types"])
def test_a_claim_reads_only_the_rows_it_takes(early_session: Session, types: list[str]) -> None:
    early_session.enqueue("other")
    read = read_by(early_session, lambda: early_session.claim(*types, batch=SETTLED))
    assert read.seq_scans == 0
    assert SETTLED <= read.rows <= 6 * SETTLED  # each row is read, locked and moved


def test_recover_reads_no_jobs_of_live_workers(early_session: Session) -> None:
    claim_some(early_session)
    assert read_by(early_session, early_session.recover_stale_jobs) <= Read(0, 10)


def test_recover_reads_only_the_rows_it_takes(early_session: Session) -> None:
    early_session.claim("mail", worker="gone", batch=SETTLED)
    early_session.clock.advance(timedelta(minutes=10))
    # every ten minutes it reads all live jobs: see enter_held.sql
    early_session.execute("insert into upkeep_log (done_at) values (howdah.clock())")
    read = read_by(early_session, early_session.recover_stale_jobs)
    early_session.clock.advance(-timedelta(minutes=10))
    assert read.seq_scans == 0
    assert SETTLED <= read.rows < 6 * SETTLED  # by worker, by id, their keys, moved, settled


def test_promote_reads_only_due_jobs(early_session: Session) -> None:
    early_session.clock.advance(timedelta(hours=1))
    early_session.promote()  # what other tests have handed back, due in a moment
    early_session.clock.advance(-timedelta(hours=1))
    assert read_by(early_session, early_session.promote) == Read(0, 0)
    for _ in range(SETTLED):
        early_session.enqueue("mail", delay=timedelta(minutes=1))
    early_session.clock.advance(timedelta(minutes=2))
    moved: list[UUID] = []  # includes jobs that other tests have handed back
    read = read_by(early_session, lambda: moved.extend(early_session.promote()))
    early_session.clock.advance(-timedelta(minutes=2))
    assert read.seq_scans == 0
    assert SETTLED <= len(moved) <= read.rows <= 3 * len(moved)


def test_promote_reads_no_more_than_its_limit(early_session: Session) -> None:
    with early_session.rolled_back():
        early_session.execute(
            "insert into jobs_live (job_type, run_at, ready_at) "
            "select 'mail', now() + n * interval '1 microsecond', null "
            "from generate_series(1, 5000) as n"
        )
        early_session.clock.advance(timedelta(minutes=1))
        read = read_by(early_session, lambda: early_session.promote(SETTLED))
        early_session.clock.advance(-timedelta(minutes=1))
    assert read.seq_scans == 0
    assert SETTLED <= read.rows <= 3 * SETTLED


def test_expire_reads_only_expired_jobs(early_session: Session) -> None:
    assert read_by(early_session, early_session.expire) == Read(0, 0)
    for _ in range(SETTLED):
        early_session.value("select howdah.enqueue('mail', p_expires => '1 minute')")
    early_session.clock.advance(timedelta(minutes=2))
    moved: list[UUID] = []
    read = read_by(early_session, lambda: moved.extend(early_session.expire()))
    early_session.clock.advance(-timedelta(minutes=2))
    assert read.seq_scans == 0
    assert SETTLED == len(moved) <= read.rows <= 5 * len(moved)


@pytest.mark.parametrize("relation", ["jobs_live", "unique_keys"])
def test_an_enqueue_with_a_key_reads_one_row_of_each_table(
    early_session: Session, relation: str
) -> None:
    for _ in ("a new key", "an existing one"):
        read = read_by(early_session, lambda: unique(early_session, "plans"), relation)
        assert read.seq_scans == 0
        assert read.rows <= 4
    early_session.cancel(unique(early_session, "plans"))


def test_jobs_with_a_key_end_without_a_scan_of_all_keys(early_session: Session) -> None:
    ids = [unique(early_session, f"end {n}") for n in range(SETTLED)]
    read = read_by(early_session, lambda: early_session.cancel(*ids), "unique_keys")
    assert read.seq_scans == 0
    assert read.rows <= 3 * SETTLED


def test_upkeep_reads_at_most_ten_rows(early_session: Session) -> None:
    early_session.promote()
    assert read_by(early_session, early_session.upkeep) <= Read(0, 10)


def test_a_plain_recover_does_not_read_finished_jobs(early_session: Session) -> None:
    plan = "\n".join(
        early_session.column(
            "explain update jobs set status='pending', worker_id=null, claimed_at=null "
            "where status in ('claimed','running') "
            "and claimed_at < now() - interval '1 hour' and attempts < max_attempts"
        )
    )
    assert "jobs_live" in plan
    assert "jobs_finished" not in plan
