"""Reprioritise, run_now, delete and clone change the right jobs and no others."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import psycopg
import pytest

from howdah import Queue, State, observe
from howdah.store import steer
from tests.observe.support import HOUR
from tests.support import Database
from tests.support.listener import Listener

pytestmark = pytest.mark.engine


def moved(db: Database, verb: str, *ids: UUID, more: str = "") -> set[UUID]:
    return set(db.column(f"select howdah.{verb}(%s::uuid[]{more})", list(ids)))


def in_every_state(db: Database) -> dict[str, UUID]:
    jobs = {"waiting": db.enqueue("mail"), "later": db.enqueue("mail", delay=HOUR)}
    jobs["running"] = db.enqueue("running")
    db.start(db.claim("running"))
    jobs["completed"] = db.enqueue("completed")
    db.complete(db.claim("completed"))
    jobs["failed"] = db.enqueue("failed")
    db.fail(db.claim("failed"))
    jobs["cancelled"] = db.enqueue("cancelled")
    db.cancel(jobs["cancelled"])
    return jobs


def test_pending_jobs_get_another_priority_and_keep_their_age(db: Database) -> None:
    jobs = in_every_state(db)
    other = db.enqueue("mail", priority=150)
    assert moved(db, "reprioritise", *jobs.values(), uuid4(), more=", 150") == {
        jobs["waiting"],
        jobs["later"],
    }
    assert db.job(jobs["waiting"])["priority"] == db.job(jobs["later"])["priority"] == 150
    assert db.job(jobs["running"])["priority"] == 100
    assert [claim.id for claim in db.claim("mail")] == [jobs["waiting"], other]


def test_a_priority_is_a_number(db: Database) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        moved(db, "reprioritise", more=", null")


def test_delayed_and_retried_jobs_run_now(db: Database) -> None:
    jobs = in_every_state(db)
    again = db.enqueue("again")
    db.retry(db.claim("again"), delay=HOUR)
    listener = Listener(db)
    listener.sleep()
    assert moved(db, "run_now", *jobs.values(), again) == {jobs["later"], again}
    (notification,) = listener.heard()
    assert set(json.loads(notification.payload)) == {"mail", "again"}
    assert {claim.id for claim in db.claim("mail", "again")} == {
        jobs["waiting"],
        jobs["later"],
        again,
    }


def test_only_ended_jobs_are_deleted_with_their_events(db: Database) -> None:
    with_events = db.enqueue("with_events")
    claims = db.claim("with_events")
    db.emit(claims, "tick")
    db.complete(claims)
    jobs = in_every_state(db)
    kept = {jobs["waiting"], jobs["later"], jobs["running"]}
    deleted = {*jobs.values(), with_events} - kept
    assert moved(db, "delete", *jobs.values(), with_events) == deleted
    assert set(db.column("select id from jobs")) == kept
    assert db.value("select count(*) from job_events") == 0
    assert db.depth() == db.counted()


def test_a_clone_is_a_new_job_like_the_old_one(db: Database) -> None:
    data = {"n": 12345678901234567890123, "to": ["kim"]}
    old = db.enqueue("mail", data, priority=150, max_attempts=7)
    db.fail(db.claim("mail"))
    listener = Listener(db)
    listener.sleep()
    (row,) = db.rows("select * from howdah.clone(%s)", [old, uuid4()])
    assert len(listener.heard()) == 1
    assert row["id"] == old
    clone = db.job(row["clone_id"])
    assert (clone["data"], clone["priority"], clone["max_attempts"]) == (data, 150, 7)
    assert (clone["status"], clone["attempts"], clone["errors"]) == ("pending", 0, [])
    assert db.state_of(old) is State.FAILED


def test_only_a_live_worker_can_be_asked_to_drain(db: Database) -> None:
    db.beat("w")
    assert db.value("select howdah.drain('w')")
    assert db.value("select howdah.drain('w')")
    assert not db.value("select howdah.drain('unknown')")
    db.clock.advance(HOUR)
    assert not db.value("select howdah.drain('w')")
    db.clock.advance(HOUR)
    db.execute("select howdah.compact_measures()")
    assert db.value("select count(*) from drain_requests") == 0, (
        "the request without an answer was removed"
    )


async def test_the_python_functions_do_the_same(queue: Queue) -> None:
    later = (await queue.enqueue("mail", {"n": 1}, delay=3600)).id
    store = queue.store
    assert await steer.reprioritise(store, [later], 7) == {later}
    assert await steer.run_now(store, [later]) == {later}
    assert await steer.run_now(store, [later]) == set()
    cloned = await steer.clone(store, [later])
    assert set(cloned) == {later}
    assert (await queue.get(cloned[later])).data == {"n": 1}
    assert await steer.delete(store, [later]) == set()
    await queue.cancel([later])
    assert await steer.delete(store, [later]) == {later}
    assert not await steer.drain(store, "unknown")
    assert await steer.pause(store, "mail", "why", "kim")
    assert (await observe.paused(store))["mail"].paused_by == "kim"
    assert await steer.resume(store, "mail")
    assert await observe.paused(store) == {}
