"""A signal and the sleep of its job at the same time, in every order: no signal is lost."""

from __future__ import annotations

import threading
from uuid import UUID

import psycopg
import pytest

from tests.support import Claimed, Database
from tests.support.background import BackgroundCall

pytestmark = pytest.mark.engine

GO = ("signal", "go", 1)


@pytest.fixture
def waiting(db: Database) -> tuple[UUID, Claimed]:
    """A job whose handler has asked for a signal, and is about to be left."""
    job = db.enqueue("mail")
    (lease,) = db.claim("mail")
    db.wait_for(lease, "go")
    return job, lease


def test_the_sleep_waits_for_a_signal_that_is_not_committed(
    db: Database, waiting: tuple[UUID, Claimed]
) -> None:
    job, lease = waiting
    other = db.session()
    with db.transaction():
        assert not db.signal(job, "go")
        suspended = BackgroundCall(lambda: other.suspend(lease, GO))
        db.wait_until_blocked(other)
    assert suspended.result()
    assert [each.id for each in db.claim("mail")] == [job]


def test_a_signal_that_is_rolled_back_wakes_nobody(
    db: Database, waiting: tuple[UUID, Claimed]
) -> None:
    job, lease = waiting
    other = db.session()
    with db.rolled_back():
        db.signal(job, "go")
        suspended = BackgroundCall(lambda: other.suspend(lease, GO))
        db.wait_until_blocked(other)
    assert suspended.result()
    assert db.claim("mail") == []
    assert db.signal(job, "go")
    assert [each.id for each in db.claim("mail")] == [job]


def test_the_signal_waits_for_a_sleep_that_is_not_committed(
    db: Database, waiting: tuple[UUID, Claimed]
) -> None:
    job, lease = waiting
    other = db.session()
    with db.transaction():
        db.suspend(lease, GO)
        signalled = BackgroundCall(lambda: other.signal(job, "go"))
        db.wait_until_blocked(other)
    assert signalled.result(), "it sees that the job sleeps"
    assert [each.id for each in db.claim("mail")] == [job]


def test_a_signal_with_an_old_snapshot_is_refused_rather_than_lost(
    db: Database, waiting: tuple[UUID, Claimed]
) -> None:
    job, lease = waiting
    other = db.session()
    with other.rolled_back():
        other.execute("set transaction isolation level repeatable read")
        other.value("select count(*) from jobs")
        db.suspend(lease, GO)
        with pytest.raises(psycopg.errors.SerializationFailure):
            other.signal(job, "go")


def test_two_signals_at_once_do_not_block_each_other_for_ever(
    db: Database, waiting: tuple[UUID, Claimed]
) -> None:
    job, lease = waiting
    db.suspend(lease, GO)
    other = db.session()
    with db.transaction():
        assert db.signal(job, "go", 1)
        second = BackgroundCall(lambda: other.signal(job, "go", 2))
        db.wait_until_blocked(other)
    assert not second.result(), "the first has woken it"
    assert [each.id for each in db.claim("mail")] == [job]


@pytest.mark.slow
def test_no_signal_is_lost_in_many_races(db: Database) -> None:
    """The two calls start together; whoever is first, the job is in line afterwards."""
    signaller, sleeper = db.session(), db.session()
    first = {"signal": 0, "sleep": 0}
    for _ in range(300):
        job = db.enqueue("mail")
        (lease,) = db.claim("mail")
        db.wait_for(lease, "go")
        start = threading.Barrier(2)

        def send(job: UUID = job, start: threading.Barrier = start) -> bool:
            start.wait()
            return signaller.signal(job, "go")

        def sleep(lease: Claimed = lease, start: threading.Barrier = start) -> bool:
            start.wait()
            return sleeper.suspend(lease, GO)

        calls: list[BackgroundCall[bool]] = [BackgroundCall(send), BackgroundCall(sleep)]
        woke, slept = (call.result() for call in calls)
        assert slept
        first["sleep" if woke else "signal"] += 1
        assert [each.id for each in db.claim("mail")] == [job]
        db.complete([lease._replace(attempts=1)])
    assert all(first.values()), f"only one order was seen: {first}"
