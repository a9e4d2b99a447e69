"""A million jobs that wait for one key, for many keys and for a limit cost the others nothing.

The tests begin on an empty table that was never analysed. A session keeps the plans that it makes
there.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Generator, Sequence
from dataclasses import dataclass
from datetime import timedelta

import asyncpg
import pytest

from howdah import Queue, WaitsFor, observe
from howdah.observe import Count, Filter
from howdah.observe.count import CAP
from howdah.store import Store, query
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
MANY = 60_000  # a page looks at 20,000 jobs, and each of them may be three buffers away


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
    costs = measured(session)  # makes the plans
    for _ in range(5):
        # the lowest of some: other activity may make a session plan again at any time
        costs = {what: min(cost, costs[what]) for what, cost in measured(session).items()}
        if max(costs.values()) < FEW:
            break
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


def test_keys_that_wait_are_counted_without_their_jobs(backlog: Backlog) -> None:
    for session in (backlog.early_session, backlog.db.session()):
        for job_type, few in (("ordered", 20), ("waiting", 600)):
            count = f"select howdah.count_waiting_keys('{job_type}', 100)"
            buffers(session, count)  # reads the catalog
            assert buffers(session, count) < few


def test_a_claim_beside_waiting_jobs_costs_as_much_as_without(backlog: Backlog) -> None:
    session = backlog.db.session()
    claim = "select * from howdah.claim_job_batch('worker', %s::text[], 10)"

    def cost(other: str) -> int:
        session.enqueue_many([{"job_type": "mail"}] * 10)
        return buffers(session, claim, ["mail", other])

    cost("waiting")  # makes the plans
    beside, without = (min(cost(other) for _ in range(3)) for other in ("waiting", "nobody"))
    assert beside <= 1.1 * without


def test_the_use_of_limits_is_counted_up_to_a_cap(backlog: Backlog) -> None:
    """However many jobs wait, and for a limit per key however many keys there are."""
    db = backlog.db
    fill = (
        "insert into jobs_live (job_type, key, limited_by, admission, arrival, ready_at) "
        "select 'limited', key, 'tenants:' || key, admission, nextval('howdah.arrivals'), null "
        "from (select {} as key, n from generate_series(1, {}) as n) as keys, "
        "unnest(array['admitted', 'limit']) as admission"
    )
    db.execute("select howdah.set_limit('tenants', 1, p_per_key => true)")
    db.execute(fill.format("'one'", WAITING // 4))
    db.execute(fill.format("'key-' || n", WAITING // 4))
    statements = {
        "limits": "select * from howdah.limit_counts(100)",
        "sample": "select howdah.sample_limits(100)",
        "slots": "select * from howdah.slot_wait_counts(100)",
    }

    def costs(session: Session) -> dict[str, int]:
        session.execute("delete from limit_history")
        return {what: buffers(session, sql) for what, sql in statements.items()}

    for session in (backlog.early_session, db.session()):
        costs(session)  # makes the plans
        first, second = costs(session), costs(session)
        lower = {what: min(cost, second[what]) for what, cost in first.items()}
        assert {what: cost for what, cost in lower.items() if cost >= 5 * FEW} == {}
    db.execute("delete from jobs_live where limited_by like 'tenants:%'")
    db.execute("select howdah.remove_limit('tenants')")


class Explained:
    """Adds up the buffers of all queries of observe/."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.buffers: int = 0
        fetch = query.fetch

        async def explained(
            store: Store, within: timedelta, sql: str, *args: object
        ) -> Sequence[asyncpg.Record]:
            prefix = "explain (analyze, buffers, timing off, format json) "
            ((text,),) = await fetch(store, within, prefix + sql, *args)
            plan = json.loads(text)[0]["Plan"]
            self.buffers += plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
            return await fetch(store, within, sql, *args)

        monkeypatch.setattr(query, "fetch", explained)

    async def cost(self, answer: Awaitable[object]) -> int:
        before = self.buffers
        await answer
        return self.buffers - before


FILTERS = {  # with the most buffers that a page and a count may read
    Filter(job_type=("waiting",), key="key-5"): FEW,
    Filter(job_type=("waiting",), key="key-5", waits_for=(WaitsFor.KEY,)): FEW,
    Filter(job_type=("waiting",), key="nobody"): FEW,
    Filter(limited_by="nobody"): FEW,
    Filter(job_type=("waiting",), key="one"): MANY,
    Filter(limited_by="api"): MANY,
    Filter(limited_by="api", waits_for=(WaitsFor.LIMIT,), key="nobody"): MANY,
    Filter(waits_for=(WaitsFor.KEY,)): MANY,
    Filter(waits_for=(WaitsFor.RETRY,)): MANY,
    Filter(job_type=("limited",), waits_for=(WaitsFor.KEY,)): MANY,
    Filter(key="nobody"): MANY,
}


@pytest.mark.parametrize("analysed", [False, True])
async def test_lists_and_counts_beside_a_million_waiting_jobs(
    backlog: Backlog, monkeypatch: pytest.MonkeyPatch, analysed: bool
) -> None:
    if analysed:
        backlog.db.execute("analyze jobs_live")
    within = timedelta(minutes=5)
    async with Queue(backlog.db.dsn) as queue:
        explained = Explained(monkeypatch)
        costs = {
            wanted: await explained.cost(observe.page(queue.store, wanted, within=within))
            for wanted in FILTERS
        }
        assert {wanted: cost for wanted, cost in costs.items() if cost >= FILTERS[wanted]} == {}
        counted = await observe.key_counts(queue.store, "waiting", within=within)
        assert (counted.keys[0].key, counted.keys[0].waiting) == ("one", Count(CAP, more=True))
        for answer in (
            observe.key_counts(queue.store, "waiting", within=within),
            observe.key_counts(queue.store, "ordered", within=within),
            observe.overview(queue.store, within=within),
            observe.why_type(queue.store, "waiting", within=within),
            observe.why_type(queue.store, "limited", within=within),
        ):
            assert await explained.cost(answer) < 2 * MANY
