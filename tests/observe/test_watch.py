"""A change of a watched job is announced; a change of any other job is not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from howdah.states import State
from tests.support import Claimed, Database
from tests.support.listener import Listener

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)


def watch(db: Database, *ids: UUID) -> dict[UUID, State]:
    rows = db.rows("select id, status from howdah.watch(%s)", list(ids))
    return {row["id"]: State(row["status"]) for row in rows}


def announced_ids(listener: Listener) -> list[set[UUID]]:
    messages = listener.heard()
    assert {message.channel for message in messages} <= {"howdah_news"}
    assert all(len(message.payload.encode()) < 8000 for message in messages)
    return [{UUID(word) for word in message.payload.split()} for message in messages]


def recover(db: Database, claims: list[Claimed]) -> object:
    db.clock.advance(HOUR)
    return db.recover_stale_jobs()


CHANGES: dict[str, Callable[[Database, list[Claimed]], object]] = {
    "start": lambda db, claims: db.start(claims),
    "progress": lambda db, claims: db.progress(claims, 50),
    "emit": lambda db, claims: db.emit(claims, "frame"),
    "complete": lambda db, claims: db.complete(claims),
    "retry": lambda db, claims: db.retry(claims),
    "fail": lambda db, claims: db.fail(claims),
    "release": lambda db, claims: db.release(claims),
    "cancel by its worker": lambda db, claims: db.cancel_held(claims),
    "recover": recover,
    "plain progress": lambda db, claims: db.plain(
        "UPDATE jobs SET progress=50 WHERE id=$1", claims[0].id
    ),
    "plain complete": lambda db, claims: db.plain(
        "UPDATE jobs SET status='completed' WHERE id=$1", claims[0].id
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_watched_job_is_announced(db: Database, change: str) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    listener = Listener(db)
    assert watch(db, job) == {job: State.CLAIMED}
    assert announced_ids(listener) == []
    CHANGES[change](db, claims)
    assert announced_ids(listener) == [{job}]


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_an_unwatched_job_is_not_announced(db: Database, change: str) -> None:
    db.enqueue("mail")
    claims = db.claim("mail")
    listener = Listener(db)
    CHANGES[change](db, claims)
    assert announced_ids(listener) == []


def test_the_cancellation_of_a_held_job_is_announced(db: Database) -> None:
    held, pending = db.enqueue("mail"), db.enqueue("other")
    db.claim("mail")
    listener = Listener(db)
    assert db.cancel(held, pending) == {held, pending}
    assert announced_ids(listener) == [{held}]


def test_watch_returns_the_current_states(db: Database) -> None:
    done, live = db.enqueue("mail"), db.enqueue("other")
    db.complete(db.claim("mail"))
    assert watch(db, done, live, uuid4()) == {done: State.COMPLETED, live: State.PENDING}


def test_a_watched_job_stays_watched_until_it_ends(db: Database) -> None:
    job = db.enqueue("mail")
    watch(db, job)
    listener = Listener(db)
    db.retry(db.claim("mail"))
    db.start(db.claim("mail"))
    assert announced_ids(listener) == [{job}, {job}]
    db.cancel(job)
    assert announced_ids(listener) == [{job}]
    db.requeue(job)
    db.start(db.claim("mail"))
    assert announced_ids(listener) == []  # a requeued job must be watched again


def test_many_ids_are_split_into_messages_within_the_size_limit(db: Database) -> None:
    jobs = set(db.enqueue_many([{"job_type": "mail"}] * 450))
    watch(db, *jobs)
    claims = db.claim("mail", batch=450)
    listener = Listener(db)
    db.complete(claims)
    announced = announced_ids(listener)
    assert sorted(len(ids) for ids in announced) == [50, 200, 200]
    assert set[UUID]().union(*announced) == jobs
