"""Jobs of one key: no more than at_once are admitted, and none waits while it could run."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NOW = "call howdah.enqueue_now('mail', '{}', null, null, null, howdah.new_id(), null, p_key => 'a')"


def limit(db: Database, at_once: int | None, *, ordered: bool = False) -> None:
    db.execute("select howdah.set_type_limit('mail', %s, %s)", at_once, ordered)


def test_a_key_without_a_rule_has_one_slot(db: Database) -> None:
    first, second = (db.enqueue("mail", key="a") for _ in range(2))
    other = db.enqueue("mail", key="b")
    assert db.claim("mail") == []
    assert db.admit() == 2
    assert {claim.id for claim in db.claim("mail")} == {first, other}
    assert db.admission_of(second) == "slot"


def test_the_end_of_a_job_hands_its_slot_to_the_next(db: Database) -> None:
    jobs = [db.enqueue("mail", key="a") for _ in range(3)]
    db.admit()
    for job in jobs:
        (claim,) = db.claim("mail")
        assert claim.id == job
        assert db.claim("mail") == []
        db.complete([claim])
    assert db.value("select count(*) from admission_requests") == 0


def test_a_look_takes_all_requests_for_its_keys(db: Database) -> None:
    for key in "abcd":
        db.enqueue("mail", key=key)
    db.execute("delete from admission_requests")
    db.execute(
        "insert into admission_requests (kind, job_type, name) "
        "select 'key', 'mail', chr(97 + n / 50) from generate_series(0, 199) as n"
    )
    # the first ten requests are for a; the latest two are for d, whose others stay
    (look,) = db.rows("select * from howdah.admit(p_limit => 10)")
    assert (look["requests"], look["admitted"]) == (10, 2)
    assert look["next_look"] == timedelta(0), "there are more"
    assert db.column("select distinct name from admission_requests order by 1") == ["b", "c", "d"]
    assert db.admit() == 2


@pytest.mark.parametrize("ends", ["complete", "fail", "cancel", "cancel by its worker", "retry"])
def test_every_end_frees_the_slot(db: Database, ends: str) -> None:
    first = db.enqueue("mail", key="a", max_attempts=1)
    second = db.enqueue("mail", key="a")
    db.admit()
    claims = db.claim("mail")
    match ends:
        case "complete":
            db.complete(claims)
        case "fail":
            db.fail(claims)
        case "cancel":
            db.cancel(first)
        case "retry":  # its last attempt
            db.retry(claims)
        case _:
            db.cancel_held(claims)
    assert [claim.id for claim in db.claim("mail")] == [second]


def test_a_batch_hands_over_as_many_slots_as_it_frees(db: Database) -> None:
    limit(db, 3)
    jobs = [db.enqueue("mail", key=key) for _ in range(5) for key in ("a", "b")]
    db.admit()
    claims = db.claim("mail", batch=100)
    assert {claim.id for claim in claims} == set(jobs[:6])
    db.complete(claims)
    assert {claim.id for claim in db.claim("mail", batch=100)} == set(jobs[6:])


def test_the_best_priority_is_admitted_first(db: Database) -> None:
    low, middle, high = (db.enqueue("mail", key="a", priority=p) for p in (1, 2, 3))
    db.admit()
    for job in (high, middle, low):
        (claim,) = db.claim("mail")
        assert claim.id == job
        db.complete([claim])


def test_types_have_slots_of_their_own(db: Database) -> None:
    jobs = {db.enqueue(job_type, key="a") for job_type in ("mail", "report")}
    db.admit()
    assert {claim.id for claim in db.claim("mail", "report")} == jobs


def test_without_a_limit_per_key_a_key_is_a_label(db: Database) -> None:
    limit(db, None)
    job = db.enqueue("mail", key="a")
    db.enqueue("mail", key="a")
    assert len(db.claim("mail")) == 2
    assert db.job(job)["admission"] is None


def test_a_retry_after_a_delay_gives_the_slot_away_and_waits_for_it_again(db: Database) -> None:
    db.beat(silent_after=DAY)
    first, second = (db.enqueue("mail", key="a") for _ in range(2))
    db.admit()
    db.retry(db.claim("mail"), delay=HOUR)
    assert db.admission_of(first) == "time"
    (claim,) = db.claim("mail")
    assert claim.id == second
    db.clock.advance(HOUR)
    db.upkeep()
    assert db.admission_of(first) == "slot"
    assert db.claim("mail") == []
    db.complete([claim])
    assert [claim.id for claim in db.claim("mail")] == [first]


def test_a_retry_at_once_keeps_the_slot(db: Database) -> None:
    first, _ = (db.enqueue("mail", key="a") for _ in range(2))
    db.admit()
    db.retry(db.claim("mail"))
    assert [claim.id for claim in db.claim("mail")] == [first]


def test_a_released_job_keeps_its_slot_and_a_snoozed_one_gives_it_away(db: Database) -> None:
    first, second = (db.enqueue("mail", key="a") for _ in range(2))
    db.admit()
    db.release(db.claim("mail"))
    claims = db.claim("mail")
    assert [claim.id for claim in claims] == [first]
    db.release(claims, HOUR)
    assert [claim.id for claim in db.claim("mail")] == [second]


def test_a_job_that_is_handed_back_gives_its_slot_away(db: Database) -> None:
    first, second = (db.enqueue("mail", key="a") for _ in range(2))
    db.admit()
    db.hand_back(db.claim("mail"))
    assert db.admission_of(first) == "time"
    assert [claim.id for claim in db.claim("mail")] == [second]


@pytest.mark.parametrize("attempts", [1, 3])
def test_recovery_keeps_the_count(db: Database, attempts: int) -> None:
    first = db.enqueue("mail", key="a", max_attempts=attempts)
    second = db.enqueue("mail", key="a")
    db.admit()
    db.beat("gone")
    db.claim("mail", worker="gone")
    db.clock.advance(HOUR)
    db.upkeep()
    expected = second if attempts == 1 else first
    assert [claim.id for claim in db.claim("mail")] == [expected]
    assert db.admitted() == [expected]


def test_a_scheduled_job_waits_for_its_slot_when_it_is_due(db: Database) -> None:
    db.beat(silent_after=DAY)
    later = db.enqueue("mail", key="a", delay=HOUR)
    now = db.enqueue("mail", key="a")
    assert db.admission_of(later) == "time"
    db.admit()
    (claim,) = db.claim("mail")
    assert claim.id == now
    db.clock.advance(HOUR)
    db.upkeep()
    assert db.claim("mail") == []
    db.complete([claim])
    assert [claim.id for claim in db.claim("mail")] == [later]


def test_all_ways_to_enqueue_take_a_key(db: Database) -> None:
    by_many = db.enqueue_many([{"job_type": "mail", "key": "a"}, {"job_type": "mail"}])
    db.plain("insert into jobs (job_type, key) values ('mail', 'a')")
    db.execute(NOW)
    assert [claim.id for claim in db.claim("mail")] == [by_many[1]]
    waiting = db.rows("select key, admission from jobs where status = 'pending'")
    assert waiting == [{"key": "a", "admission": "slot"}] * 3
    for _ in range(3):
        db.admit()
        (claim,) = db.claim("mail")
        db.complete([claim])


def test_jobs_of_one_statement_keep_their_order(db: Database) -> None:
    drafts = [{"job_type": "mail", "key": "a", "data": {"n": n}} for n in range(50)]
    db.enqueue_many(drafts)
    numbers = db.column("select data ->> 'n' from jobs order by arrival")
    assert numbers == [str(n) for n in range(50)]


def test_an_enqueue_of_its_own_transaction_admits_its_job(db: Database) -> None:
    """A worker sleeps, so it must start as soon as possible."""
    worker = db.session()
    worker.execute("select pg_advisory_lock_shared(howdah.lock_space(), 1)")
    for _ in range(2):
        db.execute(NOW)
    states = db.column("select admission from jobs order by arrival")
    assert states == ["admitted", "slot"]
    assert len(db.claim("mail")) == 1


def test_the_key_stays_with_a_finished_job(db: Database) -> None:
    job: UUID = db.enqueue("mail", key="a")
    db.admit()
    db.complete(db.claim("mail"))
    row = db.job(job)
    assert (row["key"], row["admission"]) == ("a", None)


def test_nothing_is_admitted_in_an_old_snapshot(db: Database) -> None:
    db.enqueue("mail", key="a")
    other = db.session()
    with other.transaction():
        other.execute("set transaction isolation level repeatable read")
        assert other.rows("select * from howdah.admit()") == []
    assert db.admit() == 1


def test_an_end_in_an_old_snapshot_leaves_a_request(db: Database) -> None:
    db.enqueue("mail", key="a")
    db.admit()
    claims = db.claim("mail")
    other = db.session()
    with other.transaction():
        other.execute("set transaction isolation level repeatable read")
        other.value("select count(*) from jobs")
        second = db.enqueue("mail", key="a")
        db.admit()
        other.complete(claims)
    assert db.claim("mail") == []
    db.admit()
    assert [claim.id for claim in db.claim("mail")] == [second]
    assert db.state_of(claims[0].id) is State.COMPLETED
