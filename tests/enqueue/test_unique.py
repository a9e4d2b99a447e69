"""A unique key: at most one job of a type has it, until it has started or ended, or for a time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from howdah.states import State
from tests.support import Database
from tests.support.listener import Listener

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)


def enqueue(db: Database, key: str = "7", arguments: str = "", *, of: str = "mail") -> UUID:
    more = f", {arguments}" if arguments else ""
    return db.value(f"select howdah.enqueue(%s, p_unique_key => %s{more})", of, key)


def keys(db: Database) -> int:
    return db.value("select count(*) from unique_keys")


def test_the_same_key_gives_the_same_job_until_it_has_ended(db: Database) -> None:
    first = enqueue(db)
    assert enqueue(db) == first
    assert enqueue(db, "8") != first
    assert enqueue(db, of="fax") != first
    assert db.value("select unique_key from jobs where id = %s", first) == "7"
    claims = db.claim("mail", batch=1)
    assert enqueue(db) == first
    db.start(claims)
    assert enqueue(db) == first
    db.retry(claims)
    assert enqueue(db) == first
    claims = [claim for claim in db.claim("mail") if claim.id == first]
    db.complete(claims)
    assert enqueue(db) != first
    assert keys(db) == 3


def test_until_started_the_key_is_free_when_an_attempt_has_begun(db: Database) -> None:
    until = "p_unique_until => 'started'"
    first = enqueue(db, "7", until)
    assert enqueue(db, "7", until) == first
    claims = db.claim("mail")
    second = enqueue(db, "7", until)
    assert second != first
    assert enqueue(db, "7", until) == second
    db.retry(claims)
    assert enqueue(db, "7", until) == second  # a job that is tried again has begun before
    assert len(db.claim("mail")) == 2


def test_until_started_a_job_that_is_tried_again_has_no_key(db: Database) -> None:
    first = enqueue(db, "7", "p_unique_until => 'started'")
    db.retry(db.claim("mail"))
    second = enqueue(db, "7", "p_unique_until => 'started'")
    assert second != first
    with db.transaction():
        assert enqueue(db, "7", "p_unique_until => 'started'") == second


def test_a_job_that_was_released_before_it_began_has_its_key_again(db: Database) -> None:
    first = enqueue(db, "7", "p_unique_until => 'started'")
    db.release(db.claim("mail"))
    assert enqueue(db, "7", "p_unique_until => 'started'") == first


def test_for_a_time_the_key_stays_whatever_becomes_of_the_job(db: Database) -> None:
    for_an_hour = "p_unique_for => '1 hour'"
    first = enqueue(db, "7", for_an_hour)
    db.complete(db.claim("mail"))
    assert enqueue(db, "7", for_an_hour) == first
    db.execute("select howdah.delete(array[%s]::uuid[])", first)
    db.prune()
    assert enqueue(db, "7") == first
    db.clock.advance(HOUR)
    second = enqueue(db, "7", for_an_hour)
    assert second != first
    db.clock.advance(HOUR)
    db.prune()
    assert keys(db) == 0  # though the job is pending: the time is over
    assert enqueue(db, "7") != second


@pytest.mark.parametrize("end", ["cancel", "fail", "expire", "plain", "delete"])
def test_every_end_lets_the_key_go(db: Database, end: str) -> None:
    first = enqueue(db, "7", "p_expires => '1 hour'")
    match end:
        case "cancel":
            db.cancel(first)
        case "fail":
            db.fail(db.claim("mail"))
        case "expire":
            db.clock.advance(HOUR)
            db.expire()
        case "plain":
            db.claim("mail")
            db.plain("UPDATE jobs SET status='completed' WHERE id=$1", first)
        case _:
            with db.transaction():
                db.execute("set local session_replication_role = replica")
                db.execute("delete from jobs where id = %s", first)
    left = keys(db)
    assert left == (1 if end in ("plain", "delete") else 0)
    second = enqueue(db)
    assert second != first
    assert keys(db) == 1


def test_prune_forgets_the_keys_that_no_job_holds(db: Database) -> None:
    enqueue(db, "held")
    enqueue(db, "plain")
    db.claim("mail")
    db.plain("UPDATE jobs SET status='completed' WHERE unique_key='plain'")
    assert keys(db) == 2
    db.prune()
    assert db.column("select unique_key from unique_keys") == ["held"]


def test_a_job_that_expired_before_it_began_holds_nothing(db: Database) -> None:
    first = enqueue(db, "7", "p_expires => '1 hour'")
    assert enqueue(db) == first
    db.clock.advance(HOUR)
    second = enqueue(db)  # upkeep has not cancelled the first yet
    assert second != first
    with db.transaction():
        assert enqueue(db) == second
    db.expire()
    assert enqueue(db) == second


def test_a_job_begins_after_the_end_of_a_transaction_that_was_told_of_it(db: Database) -> None:
    first, other = enqueue(db), db.session()
    with db.transaction():
        assert enqueue(db) == first
        assert other.claim("mail") == []
    assert [claim.id for claim in other.claim("mail")] == [first]


# ── on conflict ──


def test_replace_gives_a_pending_job_the_new_payload(db: Database) -> None:
    first = enqueue(db, "7", "p_data => '{\"n\": 1}'")
    again = enqueue(db, "7", "p_data => '{\"n\": 2}', p_on_conflict => 'replace'")
    assert (again, db.job(first)["data"]) == (first, {"n": 2})
    db.claim("mail")
    assert enqueue(db, "7", "p_data => '{\"n\": 3}', p_on_conflict => 'replace'") == first
    assert db.job(first)["data"] == {"n": 2}  # it runs


def test_debounce_moves_the_time(db: Database) -> None:
    first = enqueue(db, "7", "p_delay => '1 minute', p_expires => '5 minutes'")
    debounce = "p_on_conflict => 'debounce'"
    assert enqueue(db, "7", f"p_delay => '1 hour', p_data => '{{\"n\": 2}}', {debounce}") == first
    job = db.job(first)
    assert job["run_at"] - db.value("select clock()") > timedelta(minutes=59)
    assert (job["data"], job["expires_at"], job["ready_at"]) == ({}, None, None)
    db.clock.advance(timedelta(minutes=2))
    db.promote()
    assert db.claim("mail") == []
    assert enqueue(db, "7", debounce) == first  # at once
    assert [claim.id for claim in db.claim("mail")] == [first]
    assert enqueue(db, "7", f"p_delay => '1 hour', {debounce}") == first
    assert db.state_of(first) is State.CLAIMED


def test_debounce_takes_a_job_out_of_the_line(db: Database) -> None:
    enqueue(db)
    enqueue(db, "7", "p_delay => '1 hour', p_on_conflict => 'debounce'")
    assert db.claim("mail") == []
    db.clock.advance(HOUR)
    assert len(db.promote()) == 1


def test_who_follows_a_job_hears_of_a_new_payload_and_a_new_time(db: Database) -> None:
    first = enqueue(db)
    db.execute("select count(*) from howdah.watch(array[%s]::uuid[])", first)
    listener = Listener(db)
    for conflict in ("existing", "replace", "debounce"):
        enqueue(db, "7", f"p_delay => '1 hour', p_on_conflict => '{conflict}'")
        expected = [] if conflict == "existing" else [("howdah_news", str(first))]
        assert listener.heard() == expected


def test_error_raises_and_names_the_job(db: Database) -> None:
    first = enqueue(db)
    with pytest.raises(psycopg.Error, match='the unique key "7" of the type mail') as caught:
        enqueue(db, "7", "p_on_conflict => 'error'")
    assert (caught.value.sqlstate, caught.value.diag.message_detail) == ("HW007", str(first))
    assert db.value("select count(*) from jobs") == 1


@pytest.mark.parametrize(
    ("key", "arguments", "message"),
    [
        ("", "", "p_unique_key must have 1 to 200 characters, not 0"),
        ("x" * 10_000, "", "must have 1 to 200 characters, not 10000"),
        ("7", "p_unique_until => 'soon'", 'must be started or ended, not "soon"'),
        ("7", "p_unique_for => '0'", "p_unique_for must be longer than nothing"),
        ("7", "p_unique_for => '-1 h'", "p_unique_for must be longer than nothing"),
        ("7", "p_unique_for => '1 h', p_unique_until => 'ended'", "not both"),
        (
            "7",
            "p_on_conflict => 'ignore'",
            'must be existing, replace, debounce or error, not "ign',
        ),
    ],
)
def test_wrong_options_are_refused(db: Database, key: str, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
        enqueue(db, key, arguments)
    assert keys(db) == 0


# ── enqueue_many ──


def test_enqueue_many_finds_duplicates_in_the_call_and_in_the_table(db: Database) -> None:
    old = enqueue(db, "old")
    own = db.value("select new_id()")
    ids = db.enqueue_many(
        [
            {"job_type": "mail", "unique_key": "b"},
            {"job_type": "mail"},
            {"job_type": "mail", "unique_key": "old", "id": str(own)},
            {"job_type": "mail", "unique_key": "b"},
            {"job_type": "fax", "unique_key": "b"},
            {"job_type": "mail", "unique_key": None},
            {"job_type": "mail", "unique_key": "a", "delay": "1 hour"},
            {"job_type": "mail", "unique_key": False},
        ]
    )
    assert ids[0] == ids[3]
    assert ids[2] == old
    assert len(set(ids)) == 7
    assert db.value("select count(*) from jobs") == 7
    made = [id for id in dict.fromkeys(ids) if id != old]
    assert sorted(made) == made, "they stand in line in the order given"
    assert db.value("select count(*) from jobs where unique_key is not null") == 4


def test_enqueue_many_does_what_each_draft_asks_for(db: Database) -> None:
    first = enqueue(db, "a", "p_data => '{\"n\": 1}'")
    ids = db.enqueue_many(
        [
            {"job_type": "mail", "unique_key": "a", "data": {"n": 2}, "on_conflict": "replace"},
            {"job_type": "mail", "unique_key": "a", "delay": "1 h", "on_conflict": "debounce"},
            {"job_type": "mail", "unique_key": "b", "data": {"n": 1}},
            {"job_type": "mail", "unique_key": "b", "data": {"n": 5}, "on_conflict": "replace"},
        ]
    )
    assert ids == [first, first, ids[2], ids[2]]
    assert (db.job(first)["data"], db.job(first)["ready_at"]) == ({"n": 2}, None)
    assert db.job(ids[2])["data"] == {"n": 5}
    with pytest.raises(psycopg.Error, match="belongs to job"):
        db.enqueue_many(
            [{"job_type": "mail"}, {"job_type": "mail", "unique_key": "a", "on_conflict": "error"}]
        )
    assert db.value("select count(*) from jobs") == 2


def test_the_key_of_a_payload_does_not_depend_on_how_it_is_written(db: Database) -> None:
    one, two, other = db.enqueue_many(
        [
            {"job_type": "mail", "unique_key": True, "data": {"a": 1, "b": [1, {"c": 2}]}},
            {"job_type": "mail", "unique_key": True, "data": {"b": [1, {"c": 2}], "a": 1}},
            {"job_type": "mail", "unique_key": True, "data": {"a": 1}},
        ]
    )
    assert one == two != other
    assert other == db.value(
        "select howdah.enqueue('mail', '{\"a\":   1}', p_unique_key => payload_key('{\"a\": 1}'))"
    )


def test_a_caller_of_enqueue_many_cannot_name_the_holder(db: Database) -> None:
    victim = db.enqueue("mail", {"n": 1})
    forged = {"job_type": "mail", "data": {"n": 2}, "holder": str(victim), "on_conflict": "replace"}
    for more in ({}, {"unique_key": "7"}, {"unique_key": None}):
        (id,) = db.enqueue_many([{**forged, **more}])
        assert id != victim
    (id, _) = db.enqueue_many([forged, {"job_type": "mail", "unique_key": "8"}])
    assert id != victim
    assert db.job(victim)["data"] == {"n": 1}


@pytest.mark.parametrize("wrong", ["", "x" * 10_000])
def test_enqueue_many_refuses_wrong_keys_and_adds_nothing(db: Database, wrong: Any) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="must have 1 to 200"):
        db.enqueue_many([{"job_type": "mail"}, {"job_type": "mail", "unique_key": wrong}])
    assert db.value("select count(*) from jobs") == 0


# ── plain SQL ──


def test_a_plain_insert_with_a_key_that_is_held_is_refused(db: Database) -> None:
    db.plain("INSERT INTO jobs (job_type, unique_key) VALUES ('mail', '7'), ('mail', '8')")
    for rows in ("('mail', '7')", "('mail', '9'), ('mail', '9')"):
        with pytest.raises(psycopg.Error, match=r"the unique key .* belongs to job") as caught:
            db.plain(f"INSERT INTO jobs (job_type, unique_key) VALUES {rows}")
        assert caught.value.sqlstate == "HW007"
    with pytest.raises(psycopg.Error, match=r"call howdah.enqueue with p_unique_for"):
        db.plain("INSERT INTO jobs (job_type, unique_key, unique_until) VALUES ('m', '1', 'time')")
    assert db.value("select count(*) from jobs") == 2
    first = db.value("select id from jobs where unique_key = '7'")
    assert enqueue(db) == first


def test_a_plain_update_that_revives_a_job_needs_its_key(db: Database) -> None:
    first = enqueue(db)
    db.cancel(first)
    second = enqueue(db)
    with pytest.raises(psycopg.Error, match="belongs to job"):
        db.plain("UPDATE jobs SET status='pending' WHERE id=$1", first)
    db.cancel(second)
    db.plain("UPDATE jobs SET status='pending' WHERE id=$1", first)
    assert enqueue(db) == first


# ── the other verbs ──


def test_requeue_takes_the_key_again_or_leaves_the_job(db: Database) -> None:
    first = enqueue(db)
    db.fail(db.claim("mail"))
    second = enqueue(db)
    assert db.requeue(first) == set()
    db.cancel(second)
    assert db.requeue(first, second) == {second}, "the one that ended last"
    assert enqueue(db) == second
    assert db.requeue(first) == set()


def test_requeue_of_a_job_whose_key_was_for_a_time(db: Database) -> None:
    first = enqueue(db, "7", "p_unique_for => '1 hour'")
    db.cancel(first)
    assert db.requeue(first) == {first}
    assert enqueue(db, "7", "p_unique_for => '1 hour'") == first


def test_a_clone_has_no_key(db: Database) -> None:
    first = enqueue(db)
    clone = db.value("select clone_id from howdah.clone(array[%s]::uuid[])", first)
    assert db.job(clone)["unique_key"] is None
    assert enqueue(db) == first


def test_an_id_that_is_sent_twice_with_its_key_leaves_one_job(db: Database) -> None:
    id = db.value("select new_id()")
    first = db.value("select howdah.enqueue('mail', p_id => %s, p_unique_key => '7')", id)
    with pytest.raises(psycopg.errors.UniqueViolation):
        db.value("select howdah.enqueue('mail', p_id => %s, p_unique_key => '7')", id)
    assert (first, db.value("select count(*) from jobs")) == (id, 1)


def test_an_enqueue_that_is_rolled_back_leaves_no_key(db: Database) -> None:
    with db.rolled_back():
        enqueue(db)
    assert keys(db) == 0
    assert db.value("select count(*) from jobs") == 0


def test_a_repeatable_read_transaction_gets_a_conflict_instead_of_a_second_job(
    db: Database,
) -> None:
    other = db.session()
    other.execute("begin isolation level repeatable read")
    other.value("select count(*) from jobs")
    enqueue(db)
    with pytest.raises(psycopg.errors.SerializationFailure):
        enqueue(other)  # type: ignore[arg-type]
    other.execute("rollback")


def test_jobs_without_a_key_leave_no_trace(db: Database) -> None:
    db.enqueue("mail")
    db.enqueue_many([{"job_type": "mail"}])
    db.plain("INSERT INTO jobs (job_type) VALUES ('mail')")
    db.complete(db.claim("mail"))
    assert keys(db) == 0
