"""complete_in_transaction: a completion that is one with the other effects of its transaction."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from howdah.states import State
from tests.support import Claimed, Database, Session

pytestmark = pytest.mark.engine

MARK = "select set_config('howdah.transaction', %s, true)"
IDLE = "show idle_in_transaction_session_timeout"


def complete(session: Session, claim: Claimed, mark: str = "t", **more: Any) -> str:
    """Complete in a transaction that is marked as `t`."""
    completion = {
        "worker_id": claim.worker_id,
        "id": str(claim.id),
        "attempt": claim.attempts,
        "transaction": mark,
        **more,
    }
    return session.value("select howdah.complete_in_transaction(%s)", json.dumps(completion))


def write_and_complete(db: Database, claim: Claimed) -> str:
    """Do both in one transaction."""
    with db.transaction():
        db.value(MARK, "t")
        db.execute("insert into effects values (1)")
        return complete(db, claim)


def state_of(db: Database, claim: Claimed) -> str:
    sql = "select howdah.completion_state(%s, %s, %s)"
    return db.value(sql, claim.worker_id, claim.id, claim.attempts)


def claimed(db: Database) -> Claimed:
    db.enqueue("mail")
    (claim,) = db.claim("mail")
    return claim


def test_it_is_committed_or_rolled_back_with_its_transaction(db: Database) -> None:
    claim = claimed(db)
    other = db.session()
    with db.rolled_back():
        db.value(MARK, "t")
        assert complete(db, claim) == "completed"
        assert state_of_other(other, claim) == "open"
    assert state_of(db, claim) == "held"
    with db.transaction():
        db.value(MARK, "t")
        assert complete(db, claim, result={"n": 1}, began_ago=2.5) == "completed"
    assert state_of(db, claim) == "completed"
    row = db.job(claim.id)
    assert (row["status"], row["result"], row["progress"]) == (State.COMPLETED, {"n": 1}, 100)
    assert row["completed_at"] - row["started_at"] == timedelta(seconds=2.5)


def state_of_other(session: Session, claim: Claimed) -> str:
    """Ask in another session, which must not wait for the open transaction."""
    session.execute("set lock_timeout = '1ms'")
    sql = "select howdah.completion_state(%s, %s, %s)"
    return session.value(sql, claim.worker_id, claim.id, claim.attempts)


def test_a_lost_lease_aborts_the_transaction(db: Database) -> None:
    claim = claimed(db)
    db.execute("create table effects (n int)")
    db.retry([claim], delay=timedelta(0))
    (again,) = db.claim("mail")
    with pytest.raises(psycopg.Error, match="given to another worker") as caught:
        write_and_complete(db, claim)
    assert caught.value.sqlstate == "HW010"
    assert db.column("select n from effects") == []
    assert state_of(db, claim) == "lost"
    assert state_of(db, again) == "held"


def test_a_cancelled_job_is_lost(db: Database) -> None:
    claim = claimed(db)
    db.execute("create table effects (n int)")
    db.cancel(claim.id)
    assert state_of(db, claim) == "lost"
    with pytest.raises(psycopg.Error, match="it was cancelled"):
        write_and_complete(db, claim)
    assert db.column("select n from effects") == []


def test_nothing_is_written_without_a_transaction(db: Database) -> None:
    claim = claimed(db)
    assert complete(db, claim) == "no transaction"
    db.value(MARK, "t")  # ends with its statement, in autocommit mode
    assert complete(db, claim) == "no transaction"
    with db.transaction():
        db.value(MARK, "another")
        assert complete(db, claim) == "no transaction"
    assert state_of(db, claim) == "held"


def test_a_second_completion_is_told_so(db: Database) -> None:
    claim = claimed(db)
    with db.transaction():
        db.value(MARK, "t")
        assert complete(db, claim, result=1) == "completed"
        assert complete(db, claim, result=2) == "again"
    with db.transaction():
        db.value(MARK, "t")
        assert complete(db, claim, result=3) == "again"
    assert db.job(claim.id)["result"] == 1


def test_another_database_is_told_by_job_and_worker(db: Database) -> None:
    claim = Claimed(uuid4(), "worker", 1)
    db.execute("create table effects (n int)")
    db.beat(claim.worker_id)
    with pytest.raises(psycopg.Error, match="given to another worker"):
        write_and_complete(db, claim)
    db.deregister(claim.worker_id)
    with db.transaction():
        db.value(MARK, "t")
        assert complete(db, claim) == "other database"


def test_the_job_ends_when_it_ends_and_not_when_its_transaction_began(db: Database) -> None:
    claim = claimed(db)
    with db.transaction():
        db.value(MARK, "t")
        db.value("select pg_sleep(0.05)::text")
        complete(db, claim)
        began = db.value("select howdah.clock()")
        assert db.value("select howdah.clock() = now() + %s", db.clock.offset)
    assert db.job(claim.id)["completed_at"] - began >= timedelta(seconds=0.05)


@pytest.mark.parametrize(
    ("before", "after"), [("0", "15s"), ("1min", "15s"), ("15s", "15s"), ("200ms", "200ms")]
)
def test_the_session_may_not_be_idle_for_long_before_its_commit(
    db: Database, before: str, after: str
) -> None:
    claim = claimed(db)
    db.execute(f"set idle_in_transaction_session_timeout = '{before}'")
    with db.transaction():
        db.value(MARK, "t")
        complete(db, claim)
        assert db.value(IDLE) == after
    assert db.value(IDLE) == before


def test_slots_and_unique_keys_go_to_others_with_the_commit(db: Database) -> None:
    db.execute("select howdah.set_type_limit('mail', 1)")
    first, second = db.enqueue("mail", key="a"), db.enqueue("mail", key="a")
    db.admit_all()
    (claim,) = db.claim("mail")
    assert claim.id == first
    with db.transaction():
        db.value(MARK, "t")
        complete(db, claim)
    (following,) = db.claim("mail")
    assert following.id == second


def test_an_old_snapshot_is_refused(db: Database) -> None:
    claim = claimed(db)
    other = db.session()

    def complete_late() -> None:
        with db.transaction():
            db.execute("set transaction isolation level repeatable read")
            db.value(MARK, "t")
            other.execute("update howdah.jobs_live set progress = 50 where id = %s", claim.id)
            complete(db, claim)

    with pytest.raises(psycopg.errors.SerializationFailure):
        complete_late()
    assert state_of(db, claim) == "held"
