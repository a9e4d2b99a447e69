"""A claim costs what it takes: a million jobs of a type nobody asked for cost nothing.

All begins on an empty table that was never analysed, where a planner that knows nothing makes its
plans; those plans stay with a session for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import pytest

from tests.plans.reading import buffers
from tests.support import Database, Session
from tests.support.databases import Databases

# one process has the backlog, when tests run in several
pytestmark = [pytest.mark.engine, pytest.mark.plan, pytest.mark.xdist_group("backlog")]

BACKLOG = 1_000_000
CLAIM = "select * from howdah.claim_job_batch('worker', %s::text[], 10)"
CLAIM_NEXT = "select * from howdah.claim_next('worker', 10, (%s::text[])[1])"
FEW = ["mail"]
SEVERAL = ["mail", "resize", "index"]
MANY = [*(f"type-{n}" for n in range(30)), "mail"]


@dataclass(frozen=True)
class Backlog:
    db: Database
    early: Session  # made its plans when the table was empty
    first_claim: int  # buffers of a new session's first claim, when the table was empty


@pytest.fixture(scope="module")
def backlog(databases: Databases) -> Generator[Backlog]:
    dsn = databases.create()
    db = Database(dsn)
    db.execute("alter table jobs_live set (autovacuum_enabled = off)")
    db.execute("set statement_timeout = 0")
    early = db.session()
    first_claim = buffers(early, CLAIM, FEW)
    for job_types in (FEW, SEVERAL):
        early.claim(*job_types)
    early.rows(CLAIM_NEXT, FEW)
    db.execute(
        "insert into jobs_live (job_type, priority) "
        f"select 'other', 100 + n % 3 from generate_series(1, {BACKLOG}) as n"
    )
    yield Backlog(db, early, first_claim)
    db.close()
    databases.drop(dsn)


def cost(backlog: Backlog, session: Session, job_types: list[str], claim: str = CLAIM) -> int:
    """Claim ten jobs that stand behind the backlog."""
    jobs = backlog.db.enqueue_many([{"job_type": "mail"}] * 10)
    touched = buffers(session, claim, job_types)
    claimed = backlog.db.rows(
        "select from jobs_live where id = any(%s) and worker_id is not null", jobs
    )
    assert len(claimed) == 10
    return touched


def usual_cost(backlog: Backlog, session: Session, job_types: list[str], claim: str = CLAIM) -> int:
    """The less of two: what others do on the server may make a session plan anew at any time."""
    return min(cost(backlog, session, job_types, claim) for _ in range(2))


def check_that_claims_are_cheap(backlog: Backlog) -> None:
    late = backlog.db.session()
    for types in (FEW, SEVERAL):  # it has to make its plans
        assert cost(backlog, late, types) < backlog.first_claim + 400
    for session in (backlog.early, late):
        assert usual_cost(backlog, session, FEW) < 300
        assert usual_cost(backlog, session, FEW, CLAIM_NEXT) < 300
        assert usual_cost(backlog, session, SEVERAL) < 300
        assert usual_cost(backlog, session, MANY) < 700  # a look at each of 31 lines
        # also with the backlog's own type, from which nothing is taken: its priority is lower
        backlog.db.execute("update jobs_live set priority = 1000 where job_type = 'mail'")
        # the first one makes its plan
        assert min(cost_of_the_best(backlog, session) for _ in range(3)) < 300


def cost_of_the_best(backlog: Backlog, session: Session) -> int:
    backlog.db.enqueue_many([{"job_type": "mail", "priority": 1000}] * 10)
    return buffers(session, CLAIM, ["mail", "other"])


def test_a_claim_beside_a_million_other_jobs_touches_few_buffers(backlog: Backlog) -> None:
    never_analysed = "select count(*) from pg_stats where tablename = 'jobs_live'"
    assert backlog.db.value(never_analysed) == 0
    check_that_claims_are_cheap(backlog)
    backlog.db.execute("analyze jobs_live")
    assert backlog.db.value(never_analysed) > 0
    check_that_claims_are_cheap(backlog)


def test_a_claim_from_the_million_touches_few_buffers(backlog: Backlog) -> None:
    for session in (backlog.early, backlog.db.session()):
        session.claim("other")
        assert buffers(session, CLAIM, ["other"]) < 300


def test_upkeep_beside_a_million_pending_jobs_touches_few_buffers(backlog: Backlog) -> None:
    session = backlog.db.session()
    for statement in (
        "select * from howdah.upkeep()",
        "select howdah.promote()",
        "select * from howdah.recover_stale_jobs()",
    ):
        session.rows(statement)
        assert buffers(session, statement) < 300


def test_a_plain_statement_by_id_touches_few_buffers(backlog: Backlog) -> None:
    session = backlog.db.session()
    claim, *_ = session.claim("other")
    for statement in (
        "select * from jobs where id = %s",
        "update jobs set progress = 50 where id = %s",
        "update jobs set status='completed', progress=100, completed_at=now() where id = %s",
    ):
        assert buffers(session, statement, claim.id) < 300


@pytest.fixture
def apart(databases: Databases) -> Generator[Database]:
    """A database without the guard, which would be measured as well."""
    dsn = databases.create()
    db = Database(dsn)
    yield db
    db.close()
    databases.drop(dsn)


@pytest.mark.parametrize(
    "spread",
    ["n % 100", "99 * random()", "99 * random() ^ 4", "n / 100", "greatest(0, n - 9000) / 10"],
    ids=[
        "in turns",
        "at random",
        "some often, most seldom",
        "one after another",
        "one and then all",
    ],
)
def test_a_claim_costs_what_it_takes_however_the_types_are_spread(
    apart: Database, spread: str
) -> None:
    apart.execute("select setseed(0.5)")
    apart.execute(
        "insert into jobs_live (job_type, ready_at) "
        f"select 'type-' || ({spread})::int, timestamptz '2026-01-01' + n * interval '1 second' "
        "from generate_series(0, 9999) as n"
    )
    types = [f"type-{n}" for n in range(100)]
    apart.claim(*types)  # makes its plans
    claim = "select * from howdah.claim_job_batch('worker', %s::text[], 500)"
    assert buffers(apart, claim, types) < 8000


def test_a_worker_that_knows_its_place_does_not_walk_the_dead(apart: Database) -> None:
    """Under an open snapshot nothing that was claimed can be cleaned away.

    A claim of the whole line walks it again and again; one that begins behind the last job it
    took does not.
    """
    db, reader, worker = apart, apart.session(), apart.session()
    with reader.transaction():
        reader.execute("set transaction isolation level repeatable read")
        reader.value("select count(*) from pg_class")
        db.execute("insert into jobs_live (job_type) select 'dead' from generate_series(1, 20000)")
        for _ in range(2):
            worker.complete(worker.claim("dead", batch=10_000))
        db.enqueue_many([{"job_type": "dead"}] * 20)
        (mark,) = worker.rows("select * from howdah.claim_job_batch('worker', array['dead'], 1)")
        behind = (
            "select * from howdah.claim('worker', 10, array['dead'], array[~%s::int], "
            "array[%s::timestamptz], array[%s::uuid], array[2147483647])"
        )
        position = (mark["priority"], mark["ready_at"], mark["id"])
        worker.rows(behind, *position)
        db.enqueue_many([{"job_type": "dead"}] * 20)
        assert buffers(worker, behind, *position) < 300
        assert buffers(worker, CLAIM, ["dead"]) > 600  # the measure measures


def test_upkeep_does_not_walk_the_dead_of_workers_that_live(apart: Database) -> None:
    reader, worker = apart.session(), apart.session()
    for name in ("a", "m", "z"):
        apart.beat(name)
    with reader.transaction():
        reader.execute("set transaction isolation level repeatable read")
        reader.value("select count(*) from pg_class")
        apart.execute(
            "insert into jobs_live (job_type) select 'dead' from generate_series(1, 20000)"
        )
        for name in ("a", "m", "z"):
            worker.complete(worker.claim("dead", worker=name, batch=6000))
            worker.claim("dead", worker=name, batch=5)
        worker.upkeep()
        assert buffers(worker, "select * from howdah.upkeep()") < 300
