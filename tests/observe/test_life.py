"""A job's life is told in order, without gap or overlap, from its enqueueing to its end."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import pytest

from howdah import JobNotFound, observe
from howdah.observe import Kind, Life
from tests.observe.support import HOUR, MINUTE, asking
from tests.support import Database


async def life(db: Database, job: UUID) -> Life:
    async with asking(db) as store:
        told = await observe.life(store, job)
    assert told.spans[0].began == told.job.created_at
    for sooner, later in pairwise(told.spans):
        assert sooner.ended == later.began
    assert all(span.ended is not None for span in told.spans[:-1])
    assert all(span.ended is None or span.ended >= span.began for span in told.spans)
    assert (told.spans[-1].ended is not None) == told.job.status.finished
    return told


def kinds(told: Life) -> list[str]:
    return [str(span.kind) for span in told.spans]


async def test_waiting_claimed_running_completed(db: Database) -> None:
    job = db.enqueue("mail")
    assert kinds(await life(db, job)) == ["waiting"]
    db.clock.advance(MINUTE)
    claims = db.claim("mail")
    assert kinds(await life(db, job)) == ["waiting", "claimed"]
    db.clock.advance(MINUTE)
    db.start(claims)
    told = await life(db, job)
    assert kinds(told) == ["waiting", "claimed", "running"]
    db.clock.advance(HOUR)
    db.complete(claims)
    told = await life(db, job)
    assert kinds(told) == ["waiting", "claimed", "running"]
    assert told.spans[-1].outcome == "completed"
    assert told.spans[-1].worker_id == "worker"
    assert told.waited == pytest.approx(MINUTE, abs=timedelta(seconds=5))
    assert told.ran == pytest.approx(HOUR, abs=timedelta(seconds=5))


async def test_scheduled_then_in_line(db: Database) -> None:
    job = db.enqueue("mail", delay=HOUR)
    assert kinds(await life(db, job)) == ["scheduled"]
    db.clock.advance(HOUR)
    db.promote()
    assert kinds(await life(db, job)) == ["scheduled", "waiting"]
    db.clock.advance(MINUTE)
    db.start(db.claim("mail"))
    assert kinds(await life(db, job)) == ["scheduled", "waiting", "claimed", "running"]


async def test_attempts_that_failed_keep_their_errors(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=3)
    for n in range(2):
        db.clock.advance(MINUTE)
        claims = db.claim("mail", worker=f"w{n}")
        db.start(claims)
        db.clock.advance(MINUTE)
        db.retry(claims, f"error {n}", delay=HOUR if n else None, traceback=f"trace {n}")
    told = await life(db, job)
    assert kinds(told) == ["waiting", "running", "waiting", "running", "scheduled"]
    attempts = [span for span in told.spans if span.kind is Kind.RUNNING]
    assert [(a.attempt, a.worker_id, a.outcome, a.error, a.traceback) for a in attempts] == [
        (1, "w0", "retried", "error 0", "trace 0"),
        (2, "w1", "retried", "error 1", "trace 1"),
    ]
    db.clock.advance(HOUR)
    db.promote()
    db.clock.advance(MINUTE)
    claims = db.claim("mail")
    db.start(claims)
    db.clock.advance(MINUTE)
    db.fail(claims, "error 2")
    told = await life(db, job)
    assert kinds(told)[-3:] == ["scheduled", "waiting", "running"]
    last = told.spans[-1]
    assert (last.outcome, last.error, last.attempt) == ("failed", "error 2", 3)


async def test_ended_while_it_waited(db: Database) -> None:
    job = db.enqueue("mail")
    db.clock.advance(MINUTE)
    db.cancel(job)
    assert kinds(await life(db, job)) == ["waiting"]


async def test_events_are_the_last_ones(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    for n in range(5):
        db.emit(claims, "tick", n)
    async with asking(db) as store:
        told = await observe.life(store, job, events=3)
        assert [event.data for event in told.events] == [2, 3, 4]
        assert (await observe.life(store, job, events=0)).events == []


async def test_errors_of_another_make_break_nothing(db: Database) -> None:
    job = db.enqueue("mail")
    strange = '[1, "x", {"error": "e"}, {"ended_at": "soon"}, {"ended_at": null}]'
    db.execute("update jobs_live set errors = %s::jsonb where id = %s", strange, job)
    async with asking(db) as store:
        assert kinds(await observe.life(store, job)) == ["waiting"]


async def test_no_job_no_life(db: Database) -> None:
    async with asking(db) as store:
        with pytest.raises(JobNotFound):
            await observe.life(store, uuid4())
