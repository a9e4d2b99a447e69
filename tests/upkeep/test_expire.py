"""A job that has not started by its expires_at is cancelled, and is never claimed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from howdah.states import State
from tests.support import Database
from tests.support.listener import Listener

pytestmark = pytest.mark.engine

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def enqueue(
    db: Database, arguments: str = "p_expires => interval '1 hour'", of: str = "mail"
) -> UUID:
    return db.value(f"select howdah.enqueue('{of}', {arguments})")


def expires_in(db: Database, id: UUID) -> timedelta | None:
    """Return how long a job has until it expires, in whole seconds."""
    left = db.value(
        "select date_trunc('second', expires_at - clock() + '0.5 s') from jobs where id = %s", id
    )
    return left if left is None else timedelta(seconds=round(left.total_seconds()))


# ── how it is set ──


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("p_expires => '10 min'", 10 * MINUTE),
        ("p_expires => '10 min', p_delay => '1 hour'", HOUR + 10 * MINUTE),
        (
            "p_expires => '10 min', p_run_at => howdah.clock() + interval '1 hour'",
            HOUR + 10 * MINUTE,
        ),
        ("p_expires => '10 min', p_run_at => howdah.clock() - interval '1 hour'", 10 * MINUTE),
        ("p_expires_at => howdah.clock() + interval '2 min'", 2 * MINUTE),
        ("p_expires_at => 'infinity'", None),
        ("p_expires_at => 'infinity', p_expires => '1 min'", MINUTE),
        ("p_priority => 5", None),
    ],
)
def test_an_expiry_is_an_instant_or_counted_from_when_the_job_is_due(
    db: Database, arguments: str, expected: timedelta | None
) -> None:
    assert expires_in(db, enqueue(db, arguments)) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("p_expires => '0'", "p_expires must be longer than nothing"),
        ("p_expires => '-1 s'", "p_expires must be longer than nothing"),
        (
            "p_expires => '1 s', p_expires_at => howdah.clock()",
            "p_expires_at or p_expires, not both",
        ),
        (
            "p_expires_at => howdah.clock() + interval '1 min', p_delay => '1 hour'",
            "the job would expire at .*, before it is due at",
        ),
    ],
)
def test_an_expiry_that_no_attempt_can_meet_is_refused(
    db: Database, arguments: str, message: str
) -> None:
    with pytest.raises(Exception, match=message):
        enqueue(db, arguments)


@pytest.fixture
def typed(db: Database) -> Database:
    """A database where a worker has registered that jobs of the type `otp` expire."""
    db.execute(
        "select howdah.register_job_types('w', "
        """'[{"name": "otp", "expires": "10 min"}, {"name": "mail"}]')"""
    )
    return db


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select howdah.enqueue('otp')", 10 * MINUTE),
        ("select howdah.enqueue('otp', p_priority => 7, p_max_attempts => 2)", 10 * MINUTE),
        ("select howdah.enqueue('otp', p_delay => '1 hour')", HOUR + 10 * MINUTE),
        ("select howdah.enqueue('otp', p_expires => '1 min')", MINUTE),
        ("select howdah.enqueue('otp', p_expires_at => 'infinity')", None),
        ("select howdah.enqueue('mail')", None),
        ("""select howdah.enqueue_many('[{"job_type": "otp"}]')""", 10 * MINUTE),
        ("""select howdah.enqueue_many('[{"job_type": "otp", "expires": "PT60S"}]')""", MINUTE),
        ("""select howdah.enqueue_many('[{"job_type": "otp", "expires_at": "infinity"}]')""", None),
        (
            """select howdah.enqueue_many('[{"job_type": "otp", "delay": "1 h"}]')""",
            HOUR + 10 * MINUTE,
        ),
        ("insert into jobs (job_type) values ('otp') returning id", 10 * MINUTE),
        (
            "insert into jobs (job_type, priority, max_attempts) values ('otp', 1, 1) returning id",
            10 * MINUTE,
        ),
        (
            "insert into jobs (job_type, expires_at) values ('otp', clock() + '1 m') returning id",
            MINUTE,
        ),
        (
            "insert into jobs (job_type, run_at) values ('otp', clock() + '1 h') returning id",
            HOUR + 10 * MINUTE,
        ),
        ("insert into jobs (job_type) values ('mail') returning id", None),
    ],
)
def test_a_type_has_a_default(typed: Database, sql: str, expected: timedelta | None) -> None:
    assert expires_in(typed, typed.value(sql)) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("100, null, 3, howdah.new_id(), null", None),
        ("100, null, 3, howdah.new_id(), null, null, null", 10 * MINUTE),
        ("null, null, null, howdah.new_id(), null, null, null", 10 * MINUTE),
        ("null, null, null, howdah.new_id(), null", None),
        ("null, null, null, howdah.new_id(), '1 h', null, null", HOUR + 10 * MINUTE),
        ("100, null, 3, howdah.new_id(), null, null, null, '1 min'", MINUTE),
        ("100, null, 3, '0190c1f0-0000-7000-8000-000000000000', null", None),
        ("100, null, 3, '0190c1f0-0000-7000-8000-000000000000', null, null, null", 10 * MINUTE),
    ],
)
def test_enqueue_now_asks_for_the_default_only_where_the_client_does_not_know_the_type(
    typed: Database, arguments: str, expected: timedelta | None
) -> None:
    typed.execute(f"call howdah.enqueue_now('otp', '{{}}', {arguments})")
    assert expires_in(typed, typed.value("select id from jobs")) == expected


# ── claims and upkeep ──


def claim_two_types(db: Database) -> list[UUID]:
    """Claim from two lines that both have jobs."""
    db.enqueue("fax")
    return [claim.id for claim in db.claim("mail", "fax") if claim.job_type == "mail"]


def claim_one_type(db: Database) -> list[UUID]:
    return [claim.id for claim in db.claim("mail")]


def claim_next(db: Database) -> list[UUID]:
    return db.column("select id from howdah.claim_next('w', 10, 'mail')")


def claim_urgent(db: Database) -> list[UUID]:
    """Claim what goes before a position in the line."""
    return db.column("select id from howdah.claim_next('w', 10, 'mail', 0)")


@pytest.mark.parametrize("claim", [claim_two_types, claim_one_type, claim_next, claim_urgent])
def test_an_expired_job_is_never_claimed_even_if_upkeep_is_late(
    db: Database, claim: Callable[[Database], list[UUID]]
) -> None:
    expiring, plain = enqueue(db), db.enqueue("mail")
    db.clock.advance(HOUR)
    assert claim(db) == [plain]
    assert db.state_of(expiring) is State.PENDING
    in_time = enqueue(db)
    db.clock.advance(HOUR - MINUTE)
    assert claim(db) == [in_time]


def test_expired_jobs_are_cancelled_with_a_reason_the_first_to_expire_first(db: Database) -> None:
    late = enqueue(db, "p_expires => '2 hours'")
    early = enqueue(db, "p_expires => '1 hour', p_data => '{\"a\": 1}'")
    plain = db.enqueue("mail")
    assert db.expire() == set()
    db.clock.advance(2 * HOUR)
    at: datetime = db.job(early)["expires_at"]
    assert db.expire(1) == {early}
    job = db.job(early)
    assert job["status"] == State.CANCELLED
    assert job["last_error"] == f"expired: it was not started by {at:%Y-%m-%d %H:%M:%S} UTC"
    assert (job["expires_at"], job["data"], job["attempts"]) == (at, {"a": 1}, 0)
    assert db.expire() == {late}
    assert db.state_of(plain) is State.PENDING
    assert db.depth()[("mail", State.CANCELLED)] == 2


def test_upkeep_cancels_them_and_a_delayed_job_expires_before_it_is_due(db: Database) -> None:
    id = enqueue(db)
    claims = db.claim("mail")
    db.release(claims, delay=3 * HOUR)  # a snooze does not extend it
    db.clock.advance(HOUR)
    (result,) = db.upkeep()
    assert (result["expired"], result["promoted"]) == (1, 0)
    assert db.state_of(id) is State.CANCELLED


def test_a_job_that_has_started_in_time_runs_to_its_end(db: Database) -> None:
    claimed, running = enqueue(db), enqueue(db)
    claims = {claim.id: claim for claim in db.claim("mail")}
    db.start([claims[running]])
    db.clock.advance(2 * HOUR)
    assert db.expire() == set()
    assert db.complete(list(claims.values())) == {claimed, running}


def test_who_follows_an_expired_job_is_notified(db: Database) -> None:
    id = enqueue(db)
    db.execute("select count(*) from howdah.watch(array[%s]::uuid[])", id)
    db.clock.advance(HOUR)
    listener = Listener(db)
    db.expire()
    assert listener.heard() == [("howdah_news", str(id))]


def test_a_locked_job_is_left_to_the_next_round(db: Database) -> None:
    id = enqueue(db)
    db.clock.advance(HOUR)
    other = db.session()
    with other.transaction():
        other.execute("select from jobs_live where id = %s for update", id)
        assert db.expire() == set()
    assert db.expire() == {id}


# ── the other moves ──


def test_a_failed_attempt_is_retried_only_if_the_next_one_can_begin_in_time(db: Database) -> None:
    id = enqueue(db)
    assert db.retry(db.claim("mail"), "first", delay=MINUTE) == {id: State.PENDING}
    db.clock.advance(MINUTE)
    db.promote()
    assert db.retry(db.claim("mail"), "second", delay=HOUR) == {id: State.FAILED}
    job = db.job(id)
    assert job["last_error"] == (
        f"second (not tried again: it expires at {job['expires_at']:%Y-%m-%d %H:%M:%S} UTC)"
    )
    assert [error["error"] for error in job["errors"]] == ["first", job["last_error"]]


def test_an_attempt_that_fails_after_the_expiry_is_the_last(db: Database) -> None:
    id, plain = enqueue(db), db.enqueue("mail")
    claims = db.claim("mail")
    db.clock.advance(HOUR)
    assert db.retry(claims) == {id: State.FAILED, plain: State.PENDING}


def test_the_last_attempt_fails_with_its_own_error(db: Database) -> None:
    id = enqueue(db, "p_expires => '1 hour', p_max_attempts => 1")
    db.retry(db.claim("mail"), "broken", delay=2 * HOUR)
    assert db.job(id)["last_error"] == "broken"


def test_a_retry_that_nobody_began_in_time_says_so_and_keeps_the_error(db: Database) -> None:
    id = enqueue(db)
    db.retry(db.claim("mail"), "no route", delay=MINUTE)
    db.clock.advance(HOUR)
    assert db.expire() == {id}
    job = db.job(id)
    assert job["last_error"].startswith("expired: attempt 2 was not started by ")
    assert job["last_error"].endswith("; the last error: no route")
    assert [error["error"] for error in job["errors"]] == ["no route"]


def test_the_job_of_a_lost_worker_fails_if_it_has_expired(db: Database) -> None:
    id, plain = enqueue(db), db.enqueue("mail")
    db.claim("mail")
    db.clock.advance(2 * HOUR)
    assert db.recover_stale_jobs() == {id: State.FAILED, plain: State.PENDING}
    assert ", and it expired at 20" in db.job(id)["last_error"]


def test_a_released_or_handed_back_job_expires(db: Database) -> None:
    released, unread = enqueue(db), enqueue(db)
    claims = {claim.id: claim for claim in db.claim("mail")}
    db.release([claims[released]])
    db.hand_back([claims[unread]])
    db.clock.advance(HOUR)
    assert db.expire() == {released, unread}


def test_a_requeued_job_keeps_an_expiry_to_come_and_loses_one_that_has_passed(db: Database) -> None:
    expired, in_time = enqueue(db), enqueue(db, "p_expires => '2 hours'")
    db.cancel(in_time)
    db.clock.advance(HOUR)
    db.expire()
    assert db.requeue(expired, in_time) == {expired, in_time}
    assert (expires_in(db, expired), expires_in(db, in_time)) == (None, HOUR)
    assert {claim.id for claim in db.claim("mail")} == {expired, in_time}


def test_a_plain_update_that_revives_a_job_does_the_same(db: Database) -> None:
    expired, in_time = enqueue(db), enqueue(db, "p_expires => '2 hours'")
    db.cancel(in_time)
    db.clock.advance(HOUR)
    db.expire()
    db.plain("UPDATE jobs SET status='pending', worker_id=NULL, claimed_at=NULL")
    assert (expires_in(db, expired), expires_in(db, in_time)) == (None, HOUR)


def test_a_clone_has_as_much_time_as_its_original_had(db: Database) -> None:
    id, plain = enqueue(db), db.enqueue("mail")
    db.clock.advance(2 * HOUR)
    clones = {
        row["id"]: row["clone_id"]
        for row in db.rows("select * from howdah.clone(%s::uuid[])", [id, plain])
    }
    assert expires_in(db, clones[id]) == HOUR
    assert expires_in(db, clones[plain]) is None


def test_another_priority_running_now_and_a_pause_leave_the_expiry_alone(db: Database) -> None:
    id = enqueue(db, "p_expires => '1 hour', p_delay => '1 hour'")
    at = db.job(id)["expires_at"]
    db.execute("select howdah.reprioritise(array[%s]::uuid[], 7)", id)
    db.execute("select howdah.run_now(array[%s]::uuid[])", id)
    assert db.job(id)["expires_at"] == at
    db.execute("select howdah.pause('mail')")
    db.clock.advance(2 * HOUR)
    assert db.expire() == {id}


def test_a_plain_update_may_move_the_expiry(db: Database) -> None:
    id = enqueue(db)
    db.plain("UPDATE jobs SET expires_at = expires_at + interval '1 hour' WHERE id = $1", id)
    db.clock.advance(HOUR)
    assert db.expire() == set()
    db.plain("UPDATE jobs SET expires_at = NULL WHERE id = $1", id)
    db.clock.advance(2 * HOUR)
    assert db.expire() == set()
    assert [claim.id for claim in db.claim("mail")] == [id]


def test_a_foreign_retry_after_the_expiry_is_cancelled(db: Database) -> None:
    id = enqueue(db)
    db.claim("mail")
    db.clock.advance(HOUR)
    db.plain("UPDATE jobs SET status='pending', worker_id=NULL, claimed_at=NULL WHERE id = $1", id)
    assert db.claim("mail") == []
    assert db.expire() == {id}


@pytest.mark.parametrize("wrong", ["infinity", "-infinity", "0001-01-01"])
def test_an_instant_that_not_every_client_can_read_is_refused(db: Database, wrong: Any) -> None:
    with pytest.raises(Exception, match="instants_lie_between"):
        db.execute("insert into jobs (job_type, expires_at) values ('mail', %s)", wrong)
