"""A million jobs that wait for one key, for many keys and for a limit cost the others nothing.

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
pytestmark = [pytest.mark.engine, pytest.mark.plan, pytest.mark.xdist_group("waiting")]

WAITING = 400_000  # of one key, and of a limit; half as many of as many keys
CLAIM = "select * from howdah.claim_job_batch('worker', array['mail', 'waiting'], 10)"
ADMIT = "select * from howdah.admit()"
COMPLETE = "select howdah.complete('worker', array[%s::uuid], array[1])"
CLAIM_RUN = "select * from howdah.claim_run('worker', array[%s::uuid], array[1], array[3])"
ENQUEUE = "select howdah.enqueue('waiting', p_key => %s)"
RELEASE_RUN = """
    select count(*)
    from (select array_agg(id) as ids, array_agg(attempts) as attempts from jobs_live
          where job_type = 'ordered' and key = 'one' and admission = 'admitted'
            and worker_id is not null and ready_at is null) as r
    cross join lateral howdah.release('worker', r.ids, r.attempts)
"""
FEW = 400


@dataclass(frozen=True)
class Backlog:
    db: Database
    early_session: Session  # made its plans when the table was empty


@pytest.fixture(scope="module")
def backlog(databases: Databases) -> Generator[Backlog]:
    dsn = databases.create()
    db = Database(dsn)
    db.execute("alter table jobs_live set (autovacuum_enabled = off)")
    db.execute("set statement_timeout = 0")
    db.execute("select howdah.set_limit('api', 2)")
    db.execute("select howdah.set_type_limit('limited', null, false, 'api')")
    db.execute("select howdah.set_type_limit('ordered', 1, true)")
    early_session = db.session()
    run_each(early_session)
    db.admit_all()
    fill = (
        "insert into jobs_live (job_type, key, limited_by, admission, arrival, ready_at) "
        "select {}, nextval('howdah.arrivals'), null from generate_series(1, {}) as n"
    )
    db.execute(fill.format("'waiting', 'one', null, 'slot'", WAITING))
    db.execute(fill.format("'waiting', 'key-' || n, null, 'slot'", WAITING // 2))
    db.execute(fill.format("'limited', null, 'api', 'limit'", WAITING))
    db.execute(fill.format("'ordered', 'one', null, 'slot'", WAITING // 2))
    db.execute("update type_limits set counted = true; update limits set counted = false")
    # every ten minutes upkeep looks at all keys: not now
    db.execute("delete from upkeep_log; insert into upkeep_log values (howdah.clock())")
    yield Backlog(db, early_session)
    db.close()
    databases.drop(dsn)


def run_each(session: Session) -> None:
    """Make every plan: enqueue, admit, claim and end jobs of each kind."""
    for key in ("early", "early"):
        session.rows(ENQUEUE, key)
        session.enqueue("ordered", key=key)
        session.enqueue("limited")
    for _ in range(3):
        session.admit()
        for job_type in ("waiting", "ordered", "limited"):
            claims = session.claim(job_type)
            session.complete([*claims, *session.claim_run(claims)])
    session.rows(CLAIM)
    session.upkeep()


def check_costs(session: Session) -> None:
    measured(session)  # makes the plans
    # the lower of two: other activity may make a session plan again at any time
    first, second = measured(session), measured(session)
    costs = {what: min(cost, second[what]) for what, cost in first.items()}
    assert {what: cost for what, cost in costs.items() if cost >= FEW} == {}


def measured(session: Session) -> dict[str, int]:
    """Return the buffers of each statement; every job in the middle of it is ended."""
    costs = {"enqueue": buffers(session, ENQUEUE, "one")}
    for job_type in ("waiting", "ordered", "limited"):
        session.execute(
            "insert into admission_requests (kind, job_type, name) values "
            "('key', %s, 'one'), ('key', %s, 'key-5'), ('limit', null, 'api')",
            *(job_type, job_type),
        )
        costs[f"admit {job_type}"] = buffers(session, ADMIT)
        jobs = session.claim(job_type)
        assert jobs, "a slot was free"
        if job_type == "ordered":
            costs["claim_run"] = buffers(session, CLAIM_RUN, jobs[0].id)
            assert session.value(RELEASE_RUN) == 3, "three jobs followed"
        for job in jobs:
            costs[f"complete {job_type}"] = buffers(session, COMPLETE, job.id)
        handed_over = session.claim(job_type)
        assert handed_over, "a slot was handed over"
        session.execute("delete from jobs where worker_id is not null")
    session.enqueue_many([{"job_type": "mail"}] * 10)
    costs["claim"] = buffers(session, CLAIM)
    costs["upkeep"] = buffers(session, "select * from howdah.upkeep()")
    costs["admit"] = buffers(session, ADMIT)
    costs["promote"] = buffers(session, "select howdah.promote()")
    session.execute("delete from jobs where worker_id is not null")
    session.admit_all()
    return costs


def test_a_million_waiting_jobs_cost_few_buffers(backlog: Backlog) -> None:
    check_costs(backlog.early_session)
    check_costs(backlog.db.session())
    backlog.db.execute("analyze jobs_live")
    check_costs(backlog.early_session)
    check_costs(backlog.db.session())


def test_a_claim_beside_waiting_jobs_costs_as_much_as_without(backlog: Backlog) -> None:
    session = backlog.db.session()
    claim = "select * from howdah.claim_job_batch('worker', %s::text[], 10)"

    def cost(other: str) -> int:
        session.enqueue_many([{"job_type": "mail"}] * 10)
        return buffers(session, claim, ["mail", other])

    cost("waiting")  # makes the plans
    beside, without = (min(cost(other) for _ in range(3)) for other in ("waiting", "nobody"))
    assert beside <= 1.1 * without
