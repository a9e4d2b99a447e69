"""Claims take turns to search for jobs, and no session can keep the turn."""

from __future__ import annotations

import psycopg
import pytest

from tests.support import Database
from tests.support.background import BackgroundCall
from tests.support.database import Session

pytestmark = pytest.mark.engine

TURN = "howdah.lock_space() + 1, hashtext('mail')"


def holds_a_turn(session: Session) -> bool:
    return session.value(
        "select exists (select from pg_locks "
        "where pid = pg_backend_pid() and locktype = 'advisory')"
    )


def test_a_claim_waits_while_another_searches(db: Database) -> None:
    job = db.enqueue("mail")
    holder, waiting = db.session(), db.session()
    holder.execute(f"select pg_advisory_lock({TURN})")
    claim = BackgroundCall(lambda: waiting.claim("mail"))
    db.wait_until_blocked(waiting)
    holder.execute(f"select pg_advisory_unlock({TURN})")
    assert [claimed.id for claimed in claim.result()] == [job]
    assert not holds_a_turn(waiting)


def test_claims_of_other_types_do_not_wait(db: Database) -> None:
    db.enqueue("mail")
    db.enqueue("resize")
    holder = db.session()
    holder.execute(f"select pg_advisory_lock({TURN})")
    db.execute(
        "create or replace function howdah.wait_for_turn(p_turn int) returns bool "
        "language plpgsql as $$ begin raise 'it waits'; end $$"
    )
    assert len(db.claim("resize")) == 1
    with pytest.raises(psycopg.errors.RaiseException, match="it waits"):
        db.claim("mail")


def test_a_turn_ends_with_the_search_and_not_with_the_transaction(db: Database) -> None:
    db.enqueue("mail")
    with db.transaction():
        assert len(db.claim("mail")) == 1
        assert not holds_a_turn(db)


def test_a_claim_that_fails_gives_up_its_turn(db: Database) -> None:
    db.enqueue("mail")
    db.execute("alter table howdah.paused_types rename to elsewhere")
    with pytest.raises(psycopg.errors.UndefinedTable):
        db.claim("mail")
    assert not holds_a_turn(db)


def test_a_claim_that_is_cancelled_gives_up_its_turn(db: Database) -> None:
    """The claim waits during its search, while it holds the turn."""
    db.enqueue("mail")
    worker, other = db.session(), db.session()
    for _ in range(2):
        worker.claim("nothing")  # caches the plan
    with other.transaction():
        other.execute("alter index jobs_ready set tablespace pg_default")
        claim = BackgroundCall(lambda: worker.claim("mail"))
        db.wait_until_blocked(worker)
        assert db.value(
            "select count(*) from pg_locks where locktype = 'advisory' and granted and pid = %s",
            worker.pid,
        )
        db.execute("select pg_cancel_backend(%s)", worker.pid)
        with pytest.raises(psycopg.errors.QueryCanceled):
            claim.result()
    assert not holds_a_turn(worker)


def test_a_session_that_never_ends_its_turn_blocks_no_claim(db: Database) -> None:
    job = db.enqueue("mail")
    holder = db.session()
    holder.execute(f"select pg_advisory_lock({TURN})")
    assert [claimed.id for claimed in db.claim("mail")] == [job]
