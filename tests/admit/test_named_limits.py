"""Named limits: over all types that name them, and per key."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from tests.support import Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def name_limit(db: Database, *job_types: str, at_once: int | None = None) -> None:
    for job_type in job_types:
        db.execute("select howdah.set_type_limit(%s, %s, false, 'api')", job_type, at_once)


def test_a_limit_holds_over_all_types_that_name_it(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 2)")
    name_limit(db, "mail", "report")
    jobs = [db.enqueue(job_type) for job_type in ("mail", "report", "mail")]
    db.enqueue("other")
    db.admit()
    claims = db.claim("mail", "report")
    assert [claim.id for claim in claims] == jobs[:2]
    db.complete(claims[:1])
    assert [claim.id for claim in db.claim("mail", "report")] == jobs[2:]
    assert len(db.claim("other")) == 1


def test_the_best_priority_of_all_types_is_first(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    name_limit(db, "mail", "report")
    low, high = db.enqueue("mail", priority=1), db.enqueue("report", priority=2)
    db.admit()
    (claim,) = db.claim("mail", "report")
    assert claim.id == high
    db.complete([claim])
    assert [claim.id for claim in db.claim("mail", "report")] == [low]


def test_a_limit_per_key_gives_each_key_its_own(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1, p_per_key => true)")
    name_limit(db, "mail", "report")
    first = [db.enqueue("mail", key="a"), db.enqueue("report", key="b"), db.enqueue("report")]
    db.enqueue("report", key="a")
    db.admit()
    assert {claim.id for claim in db.claim("mail", "report")} == set(first)


def test_a_job_needs_a_slot_of_its_key_and_one_of_its_limit(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 2)")
    name_limit(db, "mail", at_once=1)
    a = [db.enqueue("mail", key="a") for _ in range(2)]
    b = [db.enqueue("mail", key="b") for _ in range(2)]
    c = db.enqueue("mail", key="c")
    db.admit()
    claims = db.claim("mail")
    assert [claim.id for claim in claims] == [a[0], b[0]]
    assert db.admission_of(c) == "limit"
    db.complete(claims)
    assert db.admitted() == [a[1], b[1]]  # enqueued before c
    assert db.admission_of(c) == "limit"


@pytest.mark.parametrize("ordered", [False, True])
def test_a_job_in_backoff_leaves_its_limit_to_others(db: Database, ordered: bool) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    db.execute("select howdah.set_type_limit('mail', 1, %s, 'api')", ordered)
    db.beat(silent_after=DAY)
    first, other = db.enqueue("mail", key="a"), db.enqueue("mail", key="b")
    db.admit()
    db.retry(db.claim("mail"), delay=HOUR)
    assert db.admission_of(first) == ("backoff" if ordered else "time")
    claims = db.claim("mail")
    assert [claim.id for claim in claims] == [other]
    db.clock.advance(HOUR)
    db.upkeep()
    assert db.admission_of(first) == "limit"
    db.complete(claims)
    assert [claim.id for claim in db.claim("mail")] == [first]


def test_recovered_and_retried_jobs_take_a_slot_again(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    name_limit(db, "mail")
    first = db.enqueue("mail", max_attempts=5)
    db.enqueue("mail")
    db.admit()
    db.retry(db.claim("mail"))
    db.beat("gone")
    assert [claim.id for claim in db.claim("mail", worker="gone")] == [first]
    db.clock.advance(HOUR)
    db.upkeep()
    assert [claim.id for claim in db.claim("mail")] == [first]
    assert len(db.admitted()) == 1


# ── rules at run time ──


def test_a_larger_limit_lets_jobs_in_at_the_next_look(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    name_limit(db, "mail")
    for _ in range(5):
        db.enqueue("mail")
    db.admit()
    db.execute("select howdah.set_limit('api', 3)")
    db.admit()
    assert len(db.claim("mail")) == 3


def test_a_smaller_limit_hands_no_slot_over_until_few_enough_are_taken(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 3)")
    name_limit(db, "mail")
    for _ in range(10):
        db.enqueue("mail")
    db.admit()
    claims = db.claim("mail")
    db.execute("select howdah.set_limit('api', 1)")
    for claim in claims[:2]:
        db.complete([claim])
        db.admit()
        assert db.claim("mail") == []
    db.complete(claims[2:])
    db.admit()
    for _ in range(7):
        (claim,) = db.claim("mail")
        db.complete([claim])
        db.admit()
    assert db.value("select counted from limits") is False


@pytest.mark.parametrize("step", ["hand over", "admit"])
def test_fewer_slots_per_key_hold_at_once(db: Database, step: str) -> None:
    db.execute("select howdah.set_type_limit('mail', 3)")
    for _ in range(10):
        db.enqueue("mail", key="a")
    db.admit()
    claims = db.claim("mail")
    db.execute("select howdah.set_type_limit('mail', 2)")
    if step == "admit":
        db.admit()
    db.complete(claims[:1])
    db.admit()
    assert db.claim("mail") == []
    db.complete(claims[1:])
    db.admit()
    assert len(db.claim("mail")) == 2


def test_more_slots_per_key_let_jobs_in(db: Database) -> None:
    for n in range(450):
        db.enqueue("mail", key=f"key-{n}")
        db.enqueue("mail", key=f"key-{n}")
    db.admit()
    assert len(db.admitted()) == 450
    db.execute("select howdah.set_type_limit('mail', 2)")
    db.admit_all()
    assert len(db.admitted()) == 900


def test_a_removed_limit_lets_all_in(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    name_limit(db, "mail")
    jobs = [db.enqueue("mail") for _ in range(5)]
    db.admit()
    assert db.value("select howdah.remove_limit('api')") is True
    db.admit()
    assert {claim.id for claim in db.claim("mail")} == set(jobs)
    assert db.value("select howdah.remove_limit('api')") is False


def test_a_new_limit_holds_for_jobs_that_were_enqueued_before(db: Database) -> None:
    jobs: list[UUID] = [db.enqueue("mail") for _ in range(5)]
    later = db.enqueue("mail", delay=HOUR)
    running = db.claim("mail", batch=2)
    db.execute("select howdah.set_limit('api', 1)")
    name_limit(db, "mail")
    db.admit()
    assert db.claim("mail") == []
    assert db.admission_of(later) == "time"
    db.complete(running[:1])
    db.admit()
    assert db.claim("mail") == []  # the other one runs
    db.complete(running[1:])
    db.admit()
    assert [claim.id for claim in db.claim("mail")] == jobs[2:3]


def test_jobs_of_a_transaction_that_was_open_when_the_rule_came_follow_it(db: Database) -> None:
    producer = db.session()
    with producer.transaction():
        for _ in range(3):
            producer.enqueue("mail")
        db.execute("select howdah.set_limit('api', 1)")
        name_limit(db, "mail")
        db.admit()
    assert len(db.claim("mail", batch=1)) == 1
    db.admit_all()
    assert db.claim("mail") == []
    assert len(db.admitted()) == 1


def test_per_key_may_change(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    name_limit(db, "mail")
    for key in ("a", "a", "b", "b"):
        db.enqueue("mail", key=key)
    db.admit()
    db.execute("select howdah.set_limit('api', 1, p_per_key => true)")
    db.admit()
    db.admit()
    assert len(db.admitted()) == 2
    db.execute("select howdah.set_limit('api', 3)")
    db.admit()
    assert len(db.admitted()) == 3


# ── the code of workers ──

TYPES = '[{"name": "mail", "at_once": 2}, {"name": "other"}]'


def registered(db: Database, types: str, limits: str = "[]") -> set[str]:
    rows = db.rows("select name from howdah.register_limits('w', %s, %s)", types, limits)
    return {row["name"] for row in rows}


def test_the_code_of_the_last_worker_wins_and_a_change_by_hand_stays(db: Database) -> None:
    limits = '[{"name": "api", "at_once": 5, "rate": 10, "per": "00:01:00", "burst": 3}]'
    assert registered(db, TYPES, limits) == {"mail", "api"}
    assert registered(db, TYPES, limits) == set()
    db.execute("select howdah.set_type_limit('mail', 7)")
    db.execute("select howdah.set_limit('api', 7)")
    assert registered(db, TYPES, limits) == set()
    assert db.value("select at_once from type_limits") == 7
    assert registered(db, TYPES.replace("2", "3"), limits) == {"mail"}
    assert db.value("select at_once from type_limits") == 3
    assert db.value("select at_once from limits") == 7
    assert registered(db, '[{"name": "mail"}]', limits) == {"mail"}
    assert db.value("select count(*) from type_limits") == 0


def test_a_rule_that_was_never_in_the_code_is_left_alone(db: Database) -> None:
    db.execute("select howdah.set_type_limit('other', 7)")
    assert registered(db, TYPES) == {"mail"}
    assert db.value("select at_once from type_limits where job_type = 'other'") == 7
