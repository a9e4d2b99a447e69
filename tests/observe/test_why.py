"""Why: each reason is told when it holds, and the sentence says what a person needs."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from howdah import JobNotFound, observe
from howdah.observe import Reason, Why
from tests.observe.support import HOUR, MINUTE, asking, listens
from tests.support import Database


async def why(db: Database, job: UUID) -> Why:
    async with asking(db) as store:
        told = await observe.why(store, job)
    assert told.job_id == job
    assert told.sentence.endswith((".", "…", "`"))
    return told


async def why_type(db: Database, job_type: str) -> Why:
    async with asking(db) as store:
        return await observe.why_type(store, job_type)


async def test_not_due_yet(db: Database) -> None:
    job = db.enqueue("mail", delay=HOUR)
    told = await why(db, job)
    assert told.reason is Reason.NOT_DUE
    assert told.until == db.job(job)["run_at"]
    assert "in 59m" in told.sentence or "in 1h" in told.sentence
    assert not told.needs_a_person


async def test_waiting_for_a_retry(db: Database) -> None:
    job = db.enqueue("mail")
    db.retry(db.claim("mail"), "no route", delay=HOUR)
    told = await why(db, job)
    assert told.reason is Reason.WAITING_FOR_RETRY
    assert told.until == db.job(job)["run_at"]
    assert "Attempt 1 of 3 failed (no route)" in told.sentence


async def test_due_and_nobody_lets_it_in(db: Database) -> None:
    job = db.enqueue("mail", delay=HOUR)
    db.clock.advance(2 * HOUR)
    told = await why(db, job)
    assert told.reason is Reason.NOBODY_PROMOTES
    assert told.needs_a_person


async def test_paused(db: Database) -> None:
    job = db.enqueue("mail")
    later = db.enqueue("mail", delay=HOUR)
    listens(db, "w", "mail")
    db.execute("select howdah.pause('mail', 'the relay is down', 'kim')")
    told = await why(db, job)
    assert told.reason is Reason.PAUSED
    assert told.needs_a_person
    assert "by kim: the relay is down" in told.sentence
    assert "howdah resume mail" in told.sentence
    told = await why(db, later)
    assert told.reason is Reason.NOT_DUE
    assert "paused, too" in told.sentence


async def test_nobody_listens(db: Database) -> None:
    job = db.enqueue("mail")
    listens(db, "w", "other")
    told = await why(db, job)
    assert told.reason is Reason.NOBODY_LISTENS
    assert told.needs_a_person
    listens(db, "v", "mail")
    assert (await why(db, job)).reason is Reason.READY
    db.clock.advance(MINUTE)
    assert (await why(db, job)).reason is Reason.NOBODY_LISTENS


async def test_all_slots_busy_and_by_whom(db: Database) -> None:
    db.enqueue_many([{"job_type": "resize"}] * 3)
    db.claim("resize", worker="w", batch=3)
    listens(db, "w", "mail", "resize", slots=3, running=3)
    job = db.enqueue("mail")
    told = await why(db, job)
    assert told.reason is Reason.SLOTS_BUSY
    assert (told.slots, told.busy, told.busy_with) == (3, 3, {"resize": 3})
    assert told.sentence == "All 3 slots of the worker w that knows mail are busy (3 resize)."
    listens(db, "v", "mail", slots=1)
    assert (await why(db, job)).reason is Reason.READY
    listens(db, "v", "mail", slots=1, running=1)
    told = await why(db, job)
    assert told.listeners == ["v", "w"] or told.listeners == ["w", "v"]
    assert "All 4 slots of the 2 workers" in told.sentence


async def test_all_threads_busy_while_there_are_slots(db: Database) -> None:
    def beat(running: int, threads_busy: int) -> None:
        said = {"threads": 2, "threads_busy": threads_busy, "thread_types": ["mail"]}
        listens(db, "w", "mail", "resize", slots=5, running=running, **said)

    job, other = db.enqueue("mail"), db.enqueue("resize")
    beat(running=2, threads_busy=2)
    told = await why(db, job)
    assert told.reason is Reason.SLOTS_BUSY
    assert told.sentence.startswith("All 2 threads of the worker w that knows mail are busy")
    assert (await why(db, other)).reason is not Reason.SLOTS_BUSY
    beat(running=2, threads_busy=1)
    assert (await why(db, job)).reason is Reason.READY
    beat(running=5, threads_busy=1)
    assert (await why(db, job)).reason is Reason.SLOTS_BUSY


async def test_behind_others_of_any_type_its_workers_take(db: Database) -> None:
    listens(db, "w", "mail", "resize")
    db.enqueue_many([{"job_type": "mail"}] * 2)
    db.enqueue_many([{"job_type": "resize", "priority": 150}] * 3)
    db.enqueue_many([{"job_type": "foreign", "priority": 150}] * 3)
    job = db.enqueue("mail")
    db.enqueue("mail")
    db.enqueue("mail", priority=30)
    told = await why(db, job)
    assert told.reason is Reason.BEHIND
    assert (told.ahead_higher.jobs, told.ahead_older.jobs) == (3, 2)
    assert told.sentence.startswith("5 jobs go first (3 of higher priority, 2 older)")
    db.execute("select howdah.pause('resize')")
    told = await why(db, job)
    assert told.sentence.startswith("2 jobs of the same priority go first")
    db.claim("mail", worker="w", batch=1)
    assert (await why(db, job)).sentence.startswith("1 job of the same priority goes first")


async def test_claimed_running_and_silent(db: Database) -> None:
    job = db.enqueue("mail")
    db.beat("w")
    claims = db.claim("mail", worker="w")
    assert (await why(db, job)).reason is Reason.CLAIMED
    db.start(claims)
    db.progress(claims, 40, "encoding")
    told = await why(db, job)
    assert told.reason is Reason.RUNNING
    assert told.worker_id == "w"
    assert told.sentence.endswith("attempt 1 of 3: 40%, encoding.")
    db.clock.advance(MINUTE)
    told = await why(db, job)
    assert told.reason is Reason.WORKER_SILENT
    assert "silent for 1m" in told.sentence


async def test_a_handler_that_holds_the_gil_of_its_worker_is_named(db: Database) -> None:
    job = db.enqueue("hog")
    db.start(db.claim("hog", worker="w"))
    for now, words in (("true", "hog holds the GIL"), ("false", "")):
        held_up = f'{{"held_up": {{"seconds": 9.5, "types": ["hog"], "now": {now}}}}}'
        db.execute("select howdah.beat('w', p_info => %s::jsonb)", held_up)
        told = await why(db, job)
        assert told.reason is Reason.RUNNING
        assert words in told.sentence
        assert ("GIL" in told.sentence) == bool(words)


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
    told = await why(db, job)
    assert told.reason is reason
    assert told.needs_a_person is (reason is not Reason.COMPLETED)
    said = {
        Reason.COMPLETED: "It completed at",
        Reason.FAILED: "It failed after 1 of 1 attempts at",
        Reason.CANCELLED: "It was cancelled at",
    }
    assert told.sentence.startswith(said[reason])
    if reason is Reason.FAILED:
        assert told.sentence.endswith("ago: no route.")


async def test_a_type_is_told_by_the_first_in_its_line(db: Database) -> None:
    assert (await why_type(db, "mail")).reason is Reason.NOBODY_LISTENS
    listens(db, "w", "mail", slots=5, running=2)
    told = await why_type(db, "mail")
    assert told.reason is Reason.IDLE
    assert "2 of 5 slots are busy" in told.sentence
    db.enqueue("mail")
    first = db.enqueue("mail", priority=150)
    told = await why_type(db, "mail")
    assert (told.reason, told.job_id) == (Reason.READY, first)
    db.execute("select howdah.pause('mail')")
    assert (await why_type(db, "mail")).reason is Reason.PAUSED
    db.execute("select howdah.pause('empty')")
    assert (await why_type(db, "empty")).reason is Reason.PAUSED


async def test_no_job_no_reason(db: Database) -> None:
    async with asking(db) as store:
        with pytest.raises(JobNotFound):
            await observe.why(store, uuid4())
