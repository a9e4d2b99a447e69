"""A claim reads only the jobs that it takes: a million jobs of another type cost nothing.

The tests begin on an empty table that was never analysed. A session keeps the plans that it makes
there.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import pytest

from tests.plans.explain import buffers
from tests.support import Database, Session
from tests.support.databases import Databases

# when tests run in several processes, only one makes the backlog
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
    early_session: Session  # made its plans when the table was empty
    first_claim: int  # buffers of a new session's first claim, when the table was empty


@pytest.fixture(scope="module")
def backlog(databases: Databases) -> Generator[Backlog]:
    dsn = databases.create()
    db = Database(dsn)
    db.execute("alter table jobs_live set (autovacuum_enabled = off)")
    db.execute("set statement_timeout = 0")
    early_session = db.session()
    first_claim = buffers(early_session, CLAIM, FEW)
    for job_types in (FEW, SEVERAL):
        early_session.claim(*job_types)
    early_session.rows(CLAIM_NEXT, FEW)
    db.execute(
        "insert into jobs_live (job_type, priority) "
        f"select 'other', 100 + n % 3 from generate_series(1, {BACKLOG}) as n"
    )
    yield Backlog(db, early_session, first_claim)
    db.close()
    databases.drop(dsn)


def cost(backlog: Backlog, session: Session, job_types: list[str], claim: str = CLAIM) -> int:
    """Return the buffers of a claim of ten jobs that were enqueued after the backlog."""
    jobs = backlog.db.enqueue_many([{"job_type": "mail"}] * 10)
    touched = buffers(session, claim, job_types)
    claimed = backlog.db.rows(
        "select from jobs_live where id = any(%s) and worker_id is not null", jobs
    )
    assert len(claimed) == 10
    return touched


def usual_cost(backlog: Backlog, session: Session, job_types: list[str], claim: str = CLAIM) -> int:
    """Return the lower of two costs: other activity may make a session plan again at any time."""
    return min(cost(backlog, session, job_types, claim) for _ in range(2))


def assert_claims_are_cheap(backlog: Backlog) -> None:
    late_session = backlog.db.session()
    for types in (FEW, SEVERAL):  # the first claim makes the plans
        assert cost(backlog, late_session, types) < backlog.first_claim + 400
    for session in (backlog.early_session, late_session):
        assert usual_cost(backlog, session, FEW) < 400
        assert usual_cost(backlog, session, FEW, CLAIM_NEXT) < 400
        assert usual_cost(backlog, session, SEVERAL) < 400
        assert usual_cost(backlog, session, MANY) < 700  # reads each of 31 lines
        # also with the type of the backlog; its priority is lower, so none of it is taken
        backlog.db.execute("update jobs_live set priority = 1000 where job_type = 'mail'")
        # the first claim makes the plan
        assert min(cost_with_backlog_type(backlog, session) for _ in range(3)) < 400


def cost_with_backlog_type(backlog: Backlog, session: Session) -> int:
    backlog.db.enqueue_many([{"job_type": "mail", "priority": 1000}] * 10)
    return buffers(session, CLAIM, ["mail", "other"])


def test_a_claim_beside_a_million_other_jobs_touches_few_buffers(backlog: Backlog) -> None:
    statistics_count = "select count(*) from pg_stats where tablename = 'jobs_live'"
    assert backlog.db.value(statistics_count) == 0
    assert_claims_are_cheap(backlog)
    backlog.db.execute("analyze jobs_live")
    assert backlog.db.value(statistics_count) > 0
    assert_claims_are_cheap(backlog)


def test_a_claim_from_the_million_touches_few_buffers(backlog: Backlog) -> None:
    for session in (backlog.early_session, backlog.db.session()):
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
def unguarded(databases: Databases) -> Generator[Database]:
    """A database without the guard, whose cost would be measured too."""
    dsn = databases.create()
    db = Database(dsn)
    yield db
    db.close()
    databases.drop(dsn)


@pytest.mark.parametrize(
    "spread",
    ["n % 100", "99 * random()", "99 * random() ^ 4", "n / 100", "greatest(0, n - 9000) / 10"],
    ids=[
        "round robin",
        "at random",
        "a few types often, most rarely",
        "type after type",
        "one type, then all",
    ],
)
def test_the_cost_of_a_claim_does_not_depend_on_the_order_of_the_types(
    unguarded: Database, spread: str
) -> None:
    unguarded.execute("select setseed(0.5)")
    unguarded.execute(
        "insert into jobs_live (job_type, ready_at) "
        f"select 'type-' || ({spread})::int, timestamptz '2026-01-01' + n * interval '1 second' "
        "from generate_series(0, 9999) as n"
    )
    types = [f"type-{n}" for n in range(100)]
    unguarded.claim(*types)  # makes the plans
    claim = "select * from howdah.claim_job_batch('worker', %s::text[], 500)"
    assert buffers(unguarded, claim, types) < 8000


def test_a_claim_after_a_known_position_does_not_read_dead_rows(unguarded: Database) -> None:
    """While a snapshot is open, vacuum cannot remove the rows of claimed jobs.

    A claim from the start of the line reads these dead rows every time. A claim that begins
    after the last job it took does not.
    """
    db, reader, worker = unguarded, unguarded.session(), unguarded.session()
    with reader.transaction():
        reader.execute("set transaction isolation level repeatable read")
        reader.value("select count(*) from pg_class")
        db.execute("insert into jobs_live (job_type) select 'dead' from generate_series(1, 20000)")
        for _ in range(2):
            worker.complete(worker.claim("dead", batch=10_000))
        db.enqueue_many([{"job_type": "dead"}] * 20)
        (last_claimed,) = worker.rows(
            "select * from howdah.claim_job_batch('worker', array['dead'], 1)"
        )
        claim_after = (
            "select * from howdah.claim('worker', 10, array['dead'], array[~%s::int], "
            "array[%s::timestamptz], array[%s::uuid], array[2147483647])"
        )
        position = (last_claimed["priority"], last_claimed["ready_at"], last_claimed["id"])
        worker.rows(claim_after, *position)
        db.enqueue_many([{"job_type": "dead"}] * 20)
        assert buffers(worker, claim_after, *position) < 300
        assert buffers(worker, CLAIM, ["dead"]) > 600  # proof that the test sees dead rows


def test_upkeep_does_not_read_dead_rows_of_live_workers(unguarded: Database) -> None:
    reader, worker = unguarded.session(), unguarded.session()
    for name in ("a", "m", "z"):
        unguarded.beat(name)
    with reader.transaction():
        reader.execute("set transaction isolation level repeatable read")
        reader.value("select count(*) from pg_class")
        unguarded.execute(
            "insert into jobs_live (job_type) select 'dead' from generate_series(1, 20000)"
        )
        for name in ("a", "m", "z"):
            worker.complete(worker.claim("dead", worker=name, batch=6000))
            worker.claim("dead", worker=name, batch=5)
        for name in ("a", "m", "z"):
            unguarded.beat(name)  # again: on a slow machine they would be silent by now
        worker.upkeep()
        assert buffers(worker, "select * from howdah.upkeep()") < 300
