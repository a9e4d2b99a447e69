"""Why: each reason is returned when it holds, with a sentence for a person."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from howdah import JobNotFound, observe
from howdah.observe import Reason, Why
from tests.observe.support import HOUR, MINUTE, beat_worker, open_store
from tests.support import Database


async def why(db: Database, job: UUID) -> Why:
    async with open_store(db) as store:
        answer = await observe.why(store, job)
    assert answer.job_id == job
    assert answer.sentence.endswith((".", "…", "`"))
    return answer


async def why_type(db: Database, job_type: str) -> Why:
    async with open_store(db) as store:
        return await observe.why_type(store, job_type)


async def test_a_scheduled_job_is_not_due(db: Database) -> None:
    job = db.enqueue("mail", delay=HOUR)
    answer = await why(db, job)
    assert answer.reason is Reason.NOT_DUE
    assert answer.until == db.job(job)["run_at"]
    assert "in 59m" in answer.sentence or "in 1h" in answer.sentence
    assert not answer.needs_a_person


async def test_waiting_for_a_retry(db: Database) -> None:
    job = db.enqueue("mail")
    db.retry(db.claim("mail"), "no route", delay=HOUR)
    answer = await why(db, job)
    assert answer.reason is Reason.WAITING_FOR_RETRY
    assert answer.until == db.job(job)["run_at"]
    assert "Attempt 1 of 3 failed (no route)" in answer.sentence


async def test_a_due_job_that_is_not_promoted(db: Database) -> None:
    job = db.enqueue("mail", delay=HOUR)
    db.clock.advance(2 * HOUR)
    answer = await why(db, job)
    assert answer.reason is Reason.NO_UPKEEP
    assert answer.needs_a_person


async def test_paused(db: Database) -> None:
    job = db.enqueue("mail")
    later = db.enqueue("mail", delay=HOUR)
    beat_worker(db, "w", "mail")
    db.execute("select howdah.pause('mail', 'the relay is down', 'kim')")
    answer = await why(db, job)
    assert answer.reason is Reason.PAUSED
    assert answer.needs_a_person
    assert "by kim: the relay is down" in answer.sentence
    assert "howdah resume mail" in answer.sentence
    answer = await why(db, later)
    assert answer.reason is Reason.NOT_DUE
    assert "paused, too" in answer.sentence


async def test_a_job_without_a_worker_for_its_type(db: Database) -> None:
    job = db.enqueue("mail")
    beat_worker(db, "w", "other")
    answer = await why(db, job)
    assert answer.reason is Reason.NO_WORKER
    assert answer.needs_a_person
    beat_worker(db, "v", "mail")
    assert (await why(db, job)).reason is Reason.READY
    db.clock.advance(MINUTE)
    assert (await why(db, job)).reason is Reason.NO_WORKER


async def test_all_slots_are_busy_with_the_types_that_use_them(db: Database) -> None:
    db.enqueue_many([{"job_type": "resize"}] * 3)
    db.claim("resize", worker="w", batch=3)
    beat_worker(db, "w", "mail", "resize", slots=3, running=3)
    job = db.enqueue("mail")
    answer = await why(db, job)
    assert answer.reason is Reason.SLOTS_BUSY
    assert (answer.slots, answer.busy, answer.busy_with) == (3, 3, {"resize": 3})
    assert answer.sentence == "All 3 slots of the worker w that knows mail are busy (3 resize)."
    beat_worker(db, "v", "mail", slots=1)
    assert (await why(db, job)).reason is Reason.READY
    beat_worker(db, "v", "mail", slots=1, running=1)
    answer = await why(db, job)
    assert answer.workers == ["v", "w"] or answer.workers == ["w", "v"]
    assert "All 4 slots of the 2 workers" in answer.sentence


async def test_all_threads_are_busy_while_slots_are_free(db: Database) -> None:
    def beat(running: int, threads_busy: int) -> None:
        info = {"threads": 2, "threads_busy": threads_busy, "thread_types": ["mail"]}
        beat_worker(db, "w", "mail", "resize", slots=5, running=running, **info)

    job, other = db.enqueue("mail"), db.enqueue("resize")
    beat(running=2, threads_busy=2)
    answer = await why(db, job)
    assert answer.reason is Reason.SLOTS_BUSY
    assert answer.sentence.startswith("All 2 threads of the worker w that knows mail are busy")
    assert (await why(db, other)).reason is not Reason.SLOTS_BUSY
    beat(running=2, threads_busy=1)
    assert (await why(db, job)).reason is Reason.READY
    beat(running=5, threads_busy=1)
    assert (await why(db, job)).reason is Reason.SLOTS_BUSY


async def test_jobs_ahead_are_counted_over_all_types_of_its_workers(db: Database) -> None:
    beat_worker(db, "w", "mail", "resize")
    db.enqueue_many([{"job_type": "mail"}] * 2)
    db.enqueue_many([{"job_type": "resize", "priority": 150}] * 3)
    db.enqueue_many([{"job_type": "foreign", "priority": 150}] * 3)
    job = db.enqueue("mail")
    db.enqueue("mail")
    db.enqueue("mail", priority=30)
    answer = await why(db, job)
    assert answer.reason is Reason.NOT_NEXT
    assert (answer.ahead_higher.jobs, answer.ahead_older.jobs) == (3, 2)
    assert answer.sentence.startswith("5 jobs go first (3 of higher priority, 2 older)")
    db.execute("select howdah.pause('resize')")
    answer = await why(db, job)
    assert answer.sentence.startswith("2 jobs of the same priority go first")
    db.claim("mail", worker="w", batch=1)
    assert (await why(db, job)).sentence.startswith("1 job of the same priority goes first")


async def test_claimed_running_and_silent(db: Database) -> None:
    job = db.enqueue("mail")
    db.beat("w")
    claims = db.claim("mail", worker="w")
    assert (await why(db, job)).reason is Reason.CLAIMED
    db.start(claims)
    db.progress(claims, 40, "encoding")
    answer = await why(db, job)
    assert answer.reason is Reason.RUNNING
    assert answer.worker_id == "w"
    assert answer.sentence.endswith("attempt 1 of 3: 40%, encoding.")
    db.clock.advance(MINUTE)
    answer = await why(db, job)
    assert answer.reason is Reason.WORKER_SILENT
    assert "silent for 1m" in answer.sentence


async def test_a_handler_that_holds_the_gil_of_its_worker_is_named(db: Database) -> None:
    job = db.enqueue("hog")
    db.start(db.claim("hog", worker="w"))
    for now, words in (("true", "hog holds the GIL"), ("false", "")):
        held_up = f'{{"held_up": {{"seconds": 9.5, "types": ["hog"], "now": {now}}}}}'
        db.execute("select howdah.beat('w', p_info => %s::jsonb)", held_up)
        answer = await why(db, job)
        assert answer.reason is Reason.RUNNING
        assert words in answer.sentence
        assert ("GIL" in answer.sentence) == bool(words)


async def test_claimed_by_a_worker_that_is_held_up(db: Database) -> None:
    """A handler that holds the GIL at once keeps its worker from reporting its start."""
    job = db.enqueue("hog")
    db.claim("hog", worker="w")
    answer = await why(db, job)
    assert answer.sentence.endswith("has not started it.")
    held_up = '{"held_up": {"seconds": 9.5, "types": ["hog"], "now": true}}'
    db.execute("select howdah.beat('w', p_info => %s::jsonb)", held_up)
    answer = await why(db, job)
    assert answer.reason is Reason.CLAIMED
    assert "has not reported its start. No thread of that worker could run" in answer.sentence
    assert "hog holds the GIL" in answer.sentence


@pytest.mark.parametrize("reason", [Reason.COMPLETED, Reason.FAILED, Reason.CANCELLED])
async def test_ended(db: Database, reason: Reason) -> None:
    job = db.enqueue("mail", max_attempts=1)
    claims = db.claim("mail")
    match reason:
        case Reason.COMPLETED:
            db.complete(claims)
        case Reason.FAILED:
            db.retry(claims, "no\nroute")
        case _:
            db.cancel(job, reason="not needed")
    answer = await why(db, job)
    assert answer.reason is reason
    assert answer.needs_a_person is (reason is not Reason.COMPLETED)
    beginnings = {
        Reason.COMPLETED: "It completed at",
        Reason.FAILED: "It failed after 1 of 1 attempts at",
        Reason.CANCELLED: "It was cancelled at",
    }
    assert answer.sentence.startswith(beginnings[reason])
    if reason is Reason.FAILED:
        assert answer.sentence.endswith("ago: no route.")


async def test_the_reason_for_a_type_is_that_of_its_first_job_in_line(db: Database) -> None:
    assert (await why_type(db, "mail")).reason is Reason.NO_WORKER
    beat_worker(db, "w", "mail", slots=5, running=2)
    answer = await why_type(db, "mail")
    assert answer.reason is Reason.IDLE
    assert "2 of 5 slots are busy" in answer.sentence
    db.enqueue("mail")
    first = db.enqueue("mail", priority=150)
    answer = await why_type(db, "mail")
    assert (answer.reason, answer.job_id) == (Reason.READY, first)
    db.execute("select howdah.pause('mail')")
    assert (await why_type(db, "mail")).reason is Reason.PAUSED
    db.execute("select howdah.pause('empty')")
    assert (await why_type(db, "empty")).reason is Reason.PAUSED


async def test_an_unknown_job_raises_job_not_found(db: Database) -> None:
    async with open_store(db) as store:
        with pytest.raises(JobNotFound):
            await observe.why(store, uuid4())
