"""Idle workers are woken once per statement when jobs join the line; busy ones are not notified."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.support import Database
from tests.support.listener import Heard, Listener

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)
PLAIN_FAIL = """UPDATE jobs
    SET status = CASE WHEN attempts >= max_attempts THEN 'failed' ELSE 'pending' END,
        last_error='no route', worker_id=NULL, claimed_at=NULL
    WHERE id=$1"""


def insert_two_types(db: Database) -> None:
    db.plain("INSERT INTO jobs (job_type) VALUES ('mail'), ('mail'), ('resize'), ('mail')")


def copy_two_types(db: Database) -> None:
    with db.connection.cursor() as cursor, cursor.copy("COPY jobs (job_type) FROM STDIN") as copy:
        for job_type in ("mail", "resize", "mail"):
            copy.write_row([job_type])


ENQUEUE_WAYS: dict[str, tuple[Callable[[Database], object], set[str]]] = {
    "enqueue": (lambda db: db.enqueue("mail"), {"mail"}),
    "enqueue_many": (
        lambda db: db.enqueue_many([{"job_type": t} for t in ("mail", "resize", "mail")]),
        {"mail", "resize"},
    ),
    "insert": (insert_two_types, {"mail", "resize"}),
    "copy": (copy_two_types, {"mail", "resize"}),
}


@pytest.mark.parametrize("way", ENQUEUE_WAYS)
def test_a_sleeping_worker_is_woken_once_with_the_types(db: Database, way: str) -> None:
    listener = Listener(db)
    listener.sleep()
    enqueue, types = ENQUEUE_WAYS[way]
    enqueue(db)
    (notification,) = listener.heard()
    assert notification.channel == "howdah_wake"
    assert set(json.loads(notification.payload)) == types


@pytest.mark.parametrize("way", ENQUEUE_WAYS)
def test_no_notification_is_sent_while_no_worker_sleeps(db: Database, way: str) -> None:
    listener = Listener(db)
    ENQUEUE_WAYS[way][0](db)
    listener.sleep()
    listener.wake_up()
    ENQUEUE_WAYS[way][0](db)
    assert listener.heard() == []


@pytest.mark.parametrize("way", ENQUEUE_WAYS)
def test_a_rollback_sends_no_notification(db: Database, way: str) -> None:
    listener = Listener(db)
    listener.sleep()
    with db.rolled_back():
        ENQUEUE_WAYS[way][0](db)
    assert listener.heard() == []


@pytest.mark.parametrize("way", ENQUEUE_WAYS)
def test_no_lock_is_left_behind(db: Database, way: str) -> None:
    listener = Listener(db)
    for asleep in (False, True):
        if asleep:
            listener.sleep()
        ENQUEUE_WAYS[way][0](db)
        held = "select count(*) from pg_locks where locktype = 'advisory' and pid = %s"
        assert db.value(held, db.pid) == 0


def test_a_job_that_returns_to_the_line_wakes_a_worker(db: Database) -> None:
    listener = Listener(db)
    listener.sleep()
    wake = [Heard("howdah_wake", '["mail"]')]
    job = db.enqueue("mail", max_attempts=10)
    assert listener.heard() == wake

    db.release(db.claim("mail"))
    assert listener.heard() == wake
    db.claim("mail")
    db.plain("UPDATE jobs SET progress=50 WHERE id=$1", job)
    assert listener.heard() == []
    db.plain(PLAIN_FAIL, job)
    assert listener.heard() == wake, "a failed attempt of a foreign worker wakes at once"
    db.retry(db.claim("mail"))
    assert listener.heard() == wake
    db.claim("mail")
    db.clock.advance(HOUR)
    db.recover_stale_jobs()
    assert listener.heard() == wake
    db.retry(db.claim("mail"), delay=HOUR)
    assert listener.heard() == []
    db.clock.advance(HOUR)
    db.promote()
    assert listener.heard() == wake
    db.cancel(job)
    assert listener.heard() == []
    db.requeue(job)
    assert listener.heard() == wake
    db.fail(db.claim("mail"))
    assert listener.heard() == []
    db.plain("UPDATE jobs SET status='pending' WHERE id=$1", job)
    assert listener.heard() == wake


def test_a_job_that_is_not_due_wakes_no_worker(db: Database) -> None:
    listener = Listener(db)
    listener.sleep()
    db.enqueue("mail", delay=HOUR)
    db.enqueue_many([{"job_type": "mail", "delay": "1 hour"}])
    db.execute("insert into jobs (job_type, run_at) values ('mail', now() + interval '1 hour')")
    db.release([])
    assert db.promote() == set()
    assert listener.heard() == []


def test_too_many_types_for_one_message_wake_every_worker(db: Database) -> None:
    listener = Listener(db)
    listener.sleep()
    db.enqueue_many([{"job_type": f"type {n:03} {'x' * 180}"} for n in range(100)])
    assert listener.heard() == [Heard("howdah_wake", "")]
