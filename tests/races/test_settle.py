"""Two sessions settle one job: one of them moves it, the other is told that it did not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from howdah.states import State
from tests.support import Claimed, Database, Session
from tests.support.background import BackgroundCall

pytestmark = pytest.mark.engine

TIMEOUT = timedelta(minutes=5)


def test_complete_waits_for_recover_and_finds_its_lease_void(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail", worker="first")
    db.clock.advance(2 * TIMEOUT)
    worker, upkeep = db.session(), db.session()
    with upkeep.transaction():
        assert upkeep.recover_stale_jobs(TIMEOUT) == {job: State.PENDING}
        complete = BackgroundCall(lambda: worker.complete(claims))
        db.wait_until_blocked(worker)
    assert complete.result() == set()
    assert db.state_of(job) is State.PENDING
    assert db.depth() == {("mail", State.PENDING): 1}


def test_a_recover_that_was_rolled_back_changes_nothing(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail", worker="first")
    db.clock.advance(2 * TIMEOUT)
    worker, upkeep = db.session(), db.session()
    with upkeep.rolled_back():
        assert upkeep.recover_stale_jobs(TIMEOUT) == {job: State.PENDING}
        complete = BackgroundCall(lambda: worker.complete(claims))
        db.wait_until_blocked(worker)
    assert complete.result() == {job}
    assert db.depth() == {("mail", State.COMPLETED): 1} == db.counted()


ENDINGS: dict[str, Callable[[Session, list[Claimed]], set[UUID]]] = {
    "complete": lambda session, claims: session.complete(claims),
    "fail": lambda session, claims: session.fail(claims),
    "retry": lambda session, claims: set(session.retry(claims)),
    "release": lambda session, claims: session.release(claims),
    "cancel by its worker": lambda session, claims: session.cancel_held(claims),
    "cancel": lambda session, claims: session.cancel(*(claim.id for claim in claims)),
}


@pytest.mark.parametrize("second", ENDINGS)
@pytest.mark.parametrize("first", ["complete", "fail", "cancel"])
def test_a_job_ends_once(db: Database, first: str, second: str) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    worker, other = db.session(), db.session()
    with worker.transaction():
        assert ENDINGS[first](worker, claims) == {job}
        second_call = BackgroundCall(lambda: ENDINGS[second](other, claims))
        db.wait_until_blocked(other)
    assert second_call.result() == set()
    ended = {"complete": State.COMPLETED, "fail": State.FAILED, "cancel": State.CANCELLED}[first]
    assert db.counted() == {("mail", ended): 1} == db.depth()


def test_a_cancel_that_waited_for_a_retry_cancels_the_pending_job(db: Database) -> None:
    """After the retry the row is still there and pending, so the cancel moves it."""
    job = db.enqueue("mail")
    claims = db.claim("mail")
    worker, client = db.session(), db.session()
    with worker.transaction():
        assert worker.retry(claims) == {job: State.PENDING}
        cancel = BackgroundCall(lambda: client.cancel(job))
        db.wait_until_blocked(client)
    assert cancel.result() == {job}
    assert db.counted() == {("mail", State.CANCELLED): 1} == db.depth()


LOCKING: dict[str, Callable[[Session, list[Claimed]], object]] = {
    **ENDINGS,
    "start": lambda session, claims: session.start(claims),
    "progress": lambda session, claims: session.progress(claims, 10),
    "emit": lambda session, claims: session.emit(claims, "x"),
    "watch": lambda session, claims: session.rows(
        "select howdah.watch(%s)", [claim.id for claim in claims]
    ),
}


@pytest.mark.parametrize("verb", LOCKING)
def test_rows_are_locked_in_id_order_so_that_batches_cannot_deadlock(
    db: Database, verb: str
) -> None:
    jobs = [db.enqueue("mail") for _ in range(5)]
    claims = db.claim("mail")
    holder, settler, reader = db.session(), db.session(), db.session()
    with holder.transaction():
        holder.execute("select from jobs_live where id = %s for update", jobs[2])
        under_way = BackgroundCall(lambda: LOCKING[verb](settler, claims[::-1]))
        db.wait_until_blocked(settler)
        free = set(reader.column("select id from jobs_live for update skip locked"))
        assert free == set(jobs[3:])
    under_way.result()


FOREIGN_COMPLETE = "UPDATE jobs SET status='completed', progress=100 WHERE id=$1"


def test_a_cancel_survives_a_plain_update_that_ends_the_job_meanwhile(db: Database) -> None:
    ended, other = db.enqueue("mail"), db.enqueue("mail")
    db.claim("mail", worker="foreign")
    foreign, client = db.session(), db.session()
    with foreign.transaction():
        foreign.plain(FOREIGN_COMPLETE, ended)
        cancel = BackgroundCall(lambda: client.cancel(ended, other))
        db.wait_until_blocked(client)
    assert cancel.result() == {other}
    assert (db.state_of(ended), db.state_of(other)) == (State.COMPLETED, State.CANCELLED)
    assert db.depth() == db.counted()


def test_a_watch_survives_a_plain_update_that_ends_the_job_meanwhile(db: Database) -> None:
    job = db.enqueue("mail")
    db.claim("mail", worker="foreign")
    foreign, client = db.session(), db.session()
    with foreign.transaction():
        foreign.plain(FOREIGN_COMPLETE, job)
        watch = BackgroundCall(
            lambda: client.rows("select id, status from howdah.watch(%s)", [job])
        )
        db.wait_until_blocked(client)
    assert watch.result() == [{"id": job, "status": "completed"}]


def test_a_settling_call_that_a_plain_update_broke_can_be_sent_again(db: Database) -> None:
    """Two workers settle one attempt, one of them by id alone: the other gets 40001."""
    taken, own = db.enqueue("mail"), db.enqueue("mail")
    claims = db.claim("mail")
    foreign, worker = db.session(), db.session()
    with foreign.transaction():
        foreign.plain(FOREIGN_COMPLETE, taken)
        complete = BackgroundCall(lambda: worker.complete(claims))
        db.wait_until_blocked(worker)
    with pytest.raises(psycopg.errors.SerializationFailure):
        complete.result()
    assert worker.complete(claims) == {own}
    assert db.counted() == {("mail", State.COMPLETED): 2} == db.depth()


def test_a_beat_before_the_recovery_keeps_the_jobs(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail", worker="first")
    db.beat("first", claims)
    db.clock.advance(timedelta(hours=1))
    worker, upkeep = db.session(), db.session()
    with worker.transaction():
        assert worker.beat("first", claims) == set()
        recover = BackgroundCall(upkeep.recover_stale_jobs)
        db.wait_until_blocked(upkeep)
    assert recover.result() == {}
    assert db.complete(claims) == {job}


def test_a_beat_after_the_recovery_returns_the_lost_jobs(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail", worker="first")
    db.beat("first", claims)
    db.clock.advance(timedelta(hours=1))
    worker, upkeep = db.session(), db.session()
    with upkeep.transaction():
        assert upkeep.recover_stale_jobs() == {job: State.PENDING}
        beat = BackgroundCall(lambda: worker.beat("first", claims))
        db.wait_until_blocked(worker)
    assert beat.result() == {job}
