"""Fair keys: a key with many jobs does not keep others waiting, and alone it can use all places."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from howdah import BadInput, Queue
from howdah.observe.why import Reason, why
from tests.support import Database
from tests.support.waiting import eventually

FAIR = "select howdah.set_type_limit('mail', null, p_fair => true)"
HOUR = timedelta(hours=1)


def beat(db: Database, worker: str, slots: object, **info: object) -> None:
    told = {"slots": slots, "job_types": ["mail"]} | info
    db.execute("select howdah.beat(%s, '{}', '{}', '15 seconds', %s)", worker, Jsonb(told))


def width(db: Database) -> int:
    return db.value("select at_once from type_limits")


def many(db: Database, jobs: int, *keys: str) -> None:
    db.enqueue_many([{"job_type": "mail", "key": key} for key in keys for _ in range(jobs)])


def keys_admitted(db: Database) -> dict[str, int]:
    rows = db.rows("select key, count(*) from jobs where admission = 'admitted' group by key")
    return {row["key"]: row["count"] for row in rows}


def starts_before(db: Database, key: str, batch: int = 10) -> int:
    """Work until a job of the key starts; returns how many others started before it."""
    before = 0
    while claims := db.claim("mail", batch=batch):
        held = db.column("select key from jobs where id = any (%s)", [c.id for c in claims])
        if key in held:
            return before
        before += len(claims)
        db.complete(claims)
        db.admit()
    raise AssertionError(f"no job of {key} is in line")


# ── the width follows the workers ──


@pytest.mark.engine
def test_the_width_follows_the_workers(db: Database) -> None:
    db.execute(FAIR)
    assert width(db) == 100  # no worker is known
    beat(db, "small", 10)
    db.upkeep()
    assert width(db) == 12
    beat(db, "big", 500, ahead=100)
    db.upkeep()
    assert width(db) == 852
    db.deregister("big")
    db.upkeep()
    assert width(db) == 12
    beat(db, "big", 500)
    db.upkeep()
    assert width(db) == 612
    db.clock.advance(HOUR)
    beat(db, "small", 10)
    db.upkeep()
    assert width(db) == 12  # the big one has died


@pytest.mark.engine
def test_small_changes_are_ignored(db: Database) -> None:
    beat(db, "w", 100)
    db.execute(FAIR)
    for slots in (90, 70, 100, 67):
        beat(db, "w", slots)
        db.upkeep()
        assert width(db) == 100


@pytest.mark.engine
def test_a_worker_that_registers_counts_at_once(db: Database) -> None:
    db.execute(FAIR)
    beat(db, "w", 1000)
    db.rows("select * from howdah.register_limits('w', %s)", Jsonb([{"name": "mail"}]))
    assert width(db) == 1200


@pytest.mark.engine
@pytest.mark.parametrize(
    ("info", "places"),
    [
        ({"job_types": ["other"]}, 100),
        ({"leaving": True}, 100),
        ({"threads": 4, "thread_types": ["mail"]}, 4),
        ({"threads": 4, "thread_types": ["other"]}, 50),
    ],
)
def test_places_that_the_type_cannot_use_do_not_count(
    db: Database, info: dict[str, object], places: int
) -> None:
    beat(db, "w", 50, **info)
    assert db.value("select howdah.places('mail')") == places


@pytest.mark.engine
@pytest.mark.parametrize("slots", ["many", None, [], {}, -5, 0, 10**400, 0.5])
@pytest.mark.parametrize("ahead", ["many", None, -(10**400), 10**400])
def test_whatever_a_worker_says_the_width_is_one_at_least(
    db: Database, slots: object, ahead: object
) -> None:
    beat(db, "w", slots, ahead=ahead, threads="x", thread_types=[["mail"], None])
    beat(db, "other", 1, job_types="mail")
    db.execute(FAIR)
    db.upkeep()
    assert 1 <= width(db) <= 120_000


# ── one key alone uses all places ──


@pytest.mark.engine
def test_one_key_alone_fills_all_places(db: Database) -> None:
    beat(db, "w", 150)
    db.execute(FAIR)
    many(db, 700, "a")
    db.admit_all()
    assert len(db.claim("mail", batch=150)) == 150
    beat(db, "more", 400)
    db.upkeep()
    db.admit_all()
    assert len(db.claim("mail", worker="more", batch=400)) == 400


@pytest.mark.engine
def test_what_one_key_leaves_the_others_use(db: Database) -> None:
    beat(db, "w", 20, silent_after=1)
    db.execute(FAIR)
    keys = [f"key-{n}" for n in range(10)]
    many(db, 3, *keys)
    many(db, 100, "z")
    db.upkeep()
    db.admit_all()
    for _ in range(6):
        claims = db.claim("mail", batch=20)
        assert len(claims) == 20
        db.complete(claims)
        db.upkeep()
        db.admit_all()


# ── a new key does not wait long ──


@pytest.mark.engine
def test_a_new_key_waits_behind_one_width_of_another(db: Database) -> None:
    beat(db, "w", 20)
    db.execute(FAIR)
    many(db, 3000, "a")
    db.upkeep()
    db.complete(db.claim("mail", batch=20))
    db.enqueue("mail", key="b")
    db.admit()
    assert starts_before(db, "b") <= 30


@pytest.mark.engine
def test_a_thousand_busy_keys_share_the_places(db: Database) -> None:
    beat(db, "w", 100)
    db.execute(FAIR)
    many(db, 5, *(f"key-{n}" for n in range(1000)))
    db.admit_all()
    assert 1000 <= len(db.admitted()) <= 3 * 1000
    db.upkeep()
    db.enqueue("mail", key="new")
    db.admit_all()
    assert starts_before(db, "new", 1000) <= 3 * 1000


@pytest.mark.engine
def test_many_keys_that_come_at_once_do_not_fill_the_line(db: Database) -> None:
    beat(db, "w", 800)
    db.execute(FAIR)
    many(db, 40, *(f"key-{n}" for n in range(100)))
    db.admit_all()
    assert 800 <= len(db.admitted()) <= 3 * 800
    assert len(set(keys_admitted(db).values())) == 1


@pytest.mark.engine
def test_a_new_key_does_not_wait_until_all_others_were_looked_at(db: Database) -> None:
    db.execute(FAIR)
    many(db, 1, *(f"key-{n}" for n in range(5000)))
    job = db.enqueue("mail", key="new")
    db.admit()
    assert db.admission_of(job) == "admitted"
    db.admit_all()
    assert len(db.admitted()) == 5001


@pytest.mark.engine
def test_keys_that_wait_get_the_same_share(db: Database) -> None:
    beat(db, "w", 20)
    db.execute(FAIR)
    many(db, 500, "a")
    db.admit_all()
    many(db, 100, "b")
    db.upkeep()
    db.admit_all()
    ran: dict[str, int] = {"a": 0, "b": 0}
    for _ in range(8):
        claims = db.claim("mail", batch=20)
        for key in db.column("select key from jobs where id = any (%s)", [c.id for c in claims]):
            ran[key] += 1
        db.complete(claims)
        db.upkeep()
    assert 60 <= ran["b"] <= 100


# ── rules that change ──


@pytest.mark.engine
def test_after_a_narrower_width_a_hand_over_counts_until_no_key_has_too_many(db: Database) -> None:
    beat(db, "w", 200)
    db.execute(FAIR)
    many(db, 600, "a")
    db.admit_all()
    assert len(db.admitted()) == 200
    beat(db, "w", 10)
    db.upkeep()
    assert db.value("select counted from type_limits") is True
    for _ in range(20):
        db.complete(db.claim("mail", batch=10))
        db.upkeep()
    assert len(db.admitted()) == 12
    assert db.value("select counted from type_limits") is False
    db.complete(db.claim("mail", batch=10))
    assert len(db.admitted()) == 12


@pytest.mark.engine
def test_a_rule_becomes_fair_and_is_fair_no_longer(db: Database) -> None:
    db.execute("select howdah.set_type_limit('mail', 1)")
    many(db, 300, "a")
    db.admit_all()
    assert len(db.admitted()) == 1
    db.execute(FAIR)
    db.admit_all()
    assert len(db.admitted()) == 100
    claims = db.claim("mail", batch=50)
    db.execute("select howdah.set_type_limit('mail', 2)")
    db.upkeep()
    assert width(db) == 2
    db.complete(claims)
    db.admit_all()
    assert len(db.admitted()) == 50
    db.execute("select howdah.set_type_limit('mail', null)")
    db.admit_all()
    assert len(db.claim("mail", batch=1000)) == 250
    db.execute(FAIR)
    waiting = db.enqueue("mail", key="a")
    db.admit_all()
    assert db.admission_of(waiting) == "slot"


@pytest.mark.engine
@pytest.mark.parametrize(
    "statement",
    [
        "update jobs set status = 'completed' where status = 'claimed'",
        "update jobs set run_at = now() + '1 hour' where admission = 'admitted'",
        """
        update jobs set status = 'pending', worker_id = null, run_at = now() + '1 hour'
        where status = 'claimed'
        """,
    ],
)
def test_plain_sql_leaves_no_place_empty(db: Database, statement: str) -> None:
    beat(db, "w", 20)
    db.execute(FAIR)
    many(db, 100, "a", "b")
    db.upkeep()
    db.admit_all()
    db.claim("mail", batch=20)
    db.plain(statement)
    db.upkeep()
    db.admit_all()
    assert len(db.claim("mail", batch=20)) == 20


@pytest.mark.engine
def test_a_width_that_somebody_has_overwritten_is_repaired(db: Database) -> None:
    beat(db, "w", 20)
    db.execute(FAIR)
    for wrong in (1, 2_000_000_000):
        db.execute("update type_limits set at_once = %s", wrong)
        db.upkeep()
        assert width(db) == 24
    with pytest.raises(psycopg.errors.CheckViolation, match="a_fair_key_has_a_width_and_no_order"):
        db.execute("update type_limits set at_once = null")


@pytest.mark.engine
def test_an_open_change_of_the_rule_blocks_no_upkeep(db: Database) -> None:
    db.execute(FAIR)
    other = db.session()
    with other.transaction():
        other.execute("select howdah.set_type_limit('mail', 7)")
        beat(db, "w", 1000)
        db.upkeep()
    assert (width(db), db.value("select fair from type_limits")) == (7, False)


@pytest.mark.engine
def test_keys_take_turns_at_a_limit_too(db: Database) -> None:
    beat(db, "w", 10)
    db.execute("select howdah.set_limit('api', 2)")
    db.execute("select howdah.set_type_limit('mail', null, p_limit => 'api', p_fair => true)")
    many(db, 200, "a")
    db.admit_all()
    db.enqueue("mail", key="b")
    db.admit_all()
    assert len(db.admitted()) == 2
    assert starts_before(db, "b") <= 20


# ── what workers register ──


@pytest.mark.engine
def test_the_newest_of_two_versions_that_disagree_wins(db: Database) -> None:
    def register(**rule: object) -> list[str]:
        types = Jsonb([{"name": "mail"} | rule])
        return db.column("select name from howdah.register_limits('w', %s)", types)

    assert register(fair=True) == ["mail"]
    assert register(fair=True) == []
    assert db.value("select fair from type_limits") is True
    assert register(at_once=3) == ["mail"]
    assert db.rows("select at_once, fair from type_limits") == [{"at_once": 3, "fair": False}]
    assert register(fair=True) == ["mail"]
    assert width(db) == 100
    assert register() == ["mail"]
    assert db.value("select count(*) from type_limits") == 0


BAD_SQL = {
    "'mail', 3, p_fair => true": "at_once must be null where fair is true, not 3",
    "'mail', 1, true, p_fair => true": "ordered and fair cannot both be true",
    "'mail', null, true, p_fair => true": "ordered and fair cannot both be true",
}


@pytest.mark.engine
@pytest.mark.parametrize("values", BAD_SQL)
def test_a_bad_rule_is_refused_and_changes_nothing(db: Database, values: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=BAD_SQL[values]):
        db.execute(f"select howdah.set_type_limit({values})")
    assert db.value("select count(*) from type_limits") == 0


BAD: dict[str, Callable[[Queue], object]] = {
    "fair=True needs key": lambda q: q.job(fair=True),
    "leave out at_once=3 or fair": lambda q: q.job(key="a", at_once=3, fair=True),
    "leave out ordered or fair": lambda q: q.job(key="a", ordered=True, fair=True),
    "fair must be True or False": lambda q: q.job(key="a", fair=1),  # type: ignore[call-overload]
}


@pytest.mark.parametrize("message", BAD)
async def test_a_bad_rule_is_refused_where_it_is_written(queue: Queue, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        BAD[message](queue)


# ── in Python ──


async def test_a_new_tenant_starts_long_before_the_jobs_that_wait(queue: Queue) -> None:
    started: list[str] = []
    sent = asyncio.Event()

    @queue.job(key="tenant", fair=True)
    async def resize(tenant: str) -> None:
        started.append(tenant)
        if len(started) == 2000:
            sent.set()
        await asyncio.sleep(0)

    async with queue.worker(concurrency=50):
        await resize.enqueue_many({"tenant": "a"} for _ in range(6000))
        await sent.wait()
        await resize.enqueue(tenant="b")
        before = len(started)
        await eventually(lambda: "b" in started, "the job of b has started")
        assert started.index("b") < before + 1000
        await eventually(lambda: len(started) == 6001, "all have started")


async def test_a_worker_tells_how_many_jobs_it_claims_ahead(queue: Queue) -> None:
    @queue.job(key="tenant", fair=True)
    async def resize(tenant: str) -> None: ...

    async with queue.worker(concurrency=50) as worker:
        (rule,) = await queue.store.fetch("select fair, at_once from howdah.type_limits")
        assert tuple(rule) == (True, 50)
        ahead: Any = await queue.store.fetchval(
            "select info->'ahead' from howdah.workers where id = $1", worker.id
        )
        assert int(ahead) >= 0


async def test_why_says_that_keys_take_turns(queue: Queue) -> None:
    await queue.store.fetchval(FAIR)
    handles = [await queue.enqueue("mail", key="tenant-7") for _ in range(130)]
    for _ in range(3):
        await queue.store.fetch("select * from howdah.admit()")
    answer = await why(queue.store, handles[-1].id)
    assert answer.reason is Reason.WAITING_FOR_KEY
    assert answer.sentence == (
        "It waits for its turn, because keys of this type take turns: the key tenant-7 has "
        "100 jobs in line or at work; 29 jobs go before it."
    )
