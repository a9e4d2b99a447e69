"""A job's history has no gap and no overlap, from its enqueue to its end."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from uuid import UUID, uuid4

import pytest

from howdah import JobNotFound, observe
from howdah.observe import JobHistory, Kind
from tests.observe.support import HOUR, MINUTE, open_store
from tests.support import Database


async def history(db: Database, job: UUID) -> JobHistory:
    async with open_store(db) as store:
        job_history = await observe.job_history(store, job)
    assert job_history.spans[0].began == job_history.job.created_at
    for earlier, later in pairwise(job_history.spans):
        assert earlier.ended == later.began
    assert all(span.ended is not None for span in job_history.spans[:-1])
    assert all(span.ended is None or span.ended >= span.began for span in job_history.spans)
    assert (job_history.spans[-1].ended is not None) == job_history.job.status.finished
    return job_history


def kinds(job_history: JobHistory) -> list[str]:
    return [str(span.kind) for span in job_history.spans]


async def test_waiting_claimed_running_completed(db: Database) -> None:
    job = db.enqueue("mail")
    assert kinds(await history(db, job)) == ["waiting"]
    db.clock.advance(MINUTE)
    claims = db.claim("mail")
    assert kinds(await history(db, job)) == ["waiting", "claimed"]
    db.clock.advance(MINUTE)
    db.start(claims)
    job_history = await history(db, job)
    assert kinds(job_history) == ["waiting", "claimed", "running"]
    db.clock.advance(HOUR)
    db.complete(claims)
    job_history = await history(db, job)
    assert kinds(job_history) == ["waiting", "claimed", "running"]
    assert job_history.spans[-1].outcome == "completed"
    assert job_history.spans[-1].worker_id == "worker"
    assert job_history.waited == pytest.approx(MINUTE, abs=timedelta(seconds=5))
    assert job_history.ran == pytest.approx(HOUR, abs=timedelta(seconds=5))


async def test_scheduled_then_in_line(db: Database) -> None:
    job = db.enqueue("mail", delay=HOUR)
    assert kinds(await history(db, job)) == ["scheduled"]
    db.clock.advance(HOUR)
    db.promote()
    assert kinds(await history(db, job)) == ["scheduled", "waiting"]
    db.clock.advance(MINUTE)
    db.start(db.claim("mail"))
    assert kinds(await history(db, job)) == ["scheduled", "waiting", "claimed", "running"]


async def test_failed_attempts_keep_their_errors(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=3)
    for n in range(2):
        db.clock.advance(MINUTE)
        claims = db.claim("mail", worker=f"w{n}")
        db.start(claims)
        db.clock.advance(MINUTE)
        db.retry(claims, f"error {n}", delay=HOUR if n else None, traceback=f"trace {n}")
    job_history = await history(db, job)
    assert kinds(job_history) == ["waiting", "running", "waiting", "running", "scheduled"]
    attempts = [span for span in job_history.spans if span.kind is Kind.RUNNING]
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
    job_history = await history(db, job)
    assert kinds(job_history)[-3:] == ["scheduled", "waiting", "running"]
    last = job_history.spans[-1]
    assert (last.outcome, last.error, last.attempt) == ("failed", "error 2", 3)


async def test_a_job_cancelled_while_it_waits_has_one_span(db: Database) -> None:
    job = db.enqueue("mail")
    db.clock.advance(MINUTE)
    db.cancel(job)
    assert kinds(await history(db, job)) == ["waiting"]


async def test_only_the_last_events_are_returned(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    for n in range(5):
        db.emit(claims, "tick", n)
    async with open_store(db) as store:
        job_history = await observe.job_history(store, job, events=3)
        assert [event.data for event in job_history.events] == [2, 3, 4]
        assert (await observe.job_history(store, job, events=0)).events == []


async def test_malformed_errors_are_ignored(db: Database) -> None:
    job = db.enqueue("mail")
    malformed = '[1, "x", {"error": "e"}, {"ended_at": "soon"}, {"ended_at": null}]'
    db.execute("update jobs_live set errors = %s::jsonb where id = %s", malformed, job)
    async with open_store(db) as store:
        assert kinds(await observe.job_history(store, job)) == ["waiting"]


async def test_an_unknown_job_raises_job_not_found(db: Database) -> None:
    async with open_store(db) as store:
        with pytest.raises(JobNotFound):
            await observe.job_history(store, uuid4())
