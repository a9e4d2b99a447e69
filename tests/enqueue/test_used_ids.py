"""An id means one job: while the job is kept, no other job can get its id.

A client can still create two jobs with one id by a COPY of its own. Then the two do not affect each
other, and calls for many jobs do not fail because of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from random import getrandbits
from uuid import UUID, uuid4, uuid5

import psycopg
import pytest

from howdah import JobContext, Queue
from howdah.errors import BadInput
from howdah.states import State
from tests.support import Database

NAMESPACE = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")

EnqueueCall = Callable[[Database, UUID], object]

ENQUEUE_CALLS: dict[str, EnqueueCall] = {
    "enqueue": lambda db, id: db.enqueue("mail", id=id),
    "enqueue_many": lambda db, id: db.enqueue_many([{"job_type": "mail", "id": str(id)}]),
    "plain INSERT": lambda db, id: db.execute(
        "insert into jobs (id, job_type) values (%s, 'mail')", id
    ),
    "enqueue_now": lambda db, id: db.execute(
        "call howdah.enqueue_now('mail', '{}', 100, null, 3, %s, null)", id
    ),
}


def made_in(seconds: int) -> UUID:
    """Return an id as a client would make it so many seconds from now."""
    milliseconds = time.time_ns() // 1_000_000 + 1000 * seconds
    return UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | getrandbits(62))


# An id made from a name, a random id, a new id of the database, and ids of other clocks.
IDS: dict[str, Callable[[Database], UUID]] = {
    "deterministic": lambda db: uuid5(NAMESPACE, "invoice 17"),
    "random": lambda db: uuid4(),
    "new": lambda db: db.value("select howdah.new_id()"),
    "old": lambda db: made_in(-70),
    "of a later time": lambda db: made_in(70),
}


def copy_without_check(db: Database, id: UUID) -> None:
    """Insert a job by COPY, as any client with the privilege to insert can."""
    with (
        db.connection.cursor() as cursor,
        cursor.copy(b"COPY howdah.jobs_live (id, job_type) FROM STDIN") as copy,
    ):
        copy.write_row((id, "mail"))


def run_to_end(db: Database, id: UUID, *, succeed: bool = True) -> None:
    db.enqueue("mail", id=id, max_attempts=1)
    claims = db.claim("mail")
    db.emit(claims, "seen")
    if succeed:
        db.complete(claims)
    else:
        db.fail(claims)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("call", "kind"),
    # enqueue_now does not check an id that was made in about the last minute
    [
        (call, kind)
        for call in ENQUEUE_CALLS
        for kind in IDS
        if (call, kind) != ("enqueue_now", "new")
    ],
)
def test_the_id_of_an_ended_job_is_refused_with_a_hint(db: Database, call: str, kind: str) -> None:
    id = IDS[kind](db)
    run_to_end(db, id)
    with pytest.raises(psycopg.Error) as refused:
        ENQUEUE_CALLS[call](db, id)
    assert refused.value.sqlstate == "HW002"
    assert str(id) in str(refused.value)
    assert "requeue that job" in (refused.value.diag.message_hint or "")
    assert db.counted() == {("mail", State.COMPLETED): 1}


@pytest.mark.engine
@pytest.mark.parametrize("call", ENQUEUE_CALLS)
def test_the_id_of_a_live_job_is_refused(db: Database, call: str) -> None:
    id = uuid4()
    db.enqueue("mail", id=id)
    with pytest.raises(psycopg.errors.UniqueViolation):
        ENQUEUE_CALLS[call](db, id)
    assert db.counted() == {("mail", State.PENDING): 1}


@pytest.mark.engine
@pytest.mark.parametrize("count", [2, 50])
def test_one_used_id_refuses_the_whole_call(db: Database, count: int) -> None:
    ids: list[UUID] = [db.value("select howdah.new_id()") for _ in range(count)]
    run_to_end(db, ids[1])
    with pytest.raises(psycopg.Error) as refused:
        db.enqueue_many([{"job_type": "mail", "id": str(id)} for id in ids])
    assert refused.value.sqlstate == "HW002"
    assert db.counted() == {("mail", State.COMPLETED): 1}


@pytest.mark.engine
def test_an_id_can_be_used_again_once_its_job_is_deleted(db: Database) -> None:
    id = uuid4()
    run_to_end(db, id)
    assert db.value("select howdah.delete(array[%s::uuid])", id) == id
    db.enqueue("mail", id=id)
    assert [claim.id for claim in db.claim("mail")] == [id]


async def test_a_draft_is_refused_the_second_time(queue: Queue) -> None:
    @queue.job
    async def mail() -> None: ...

    drafts = [mail.draft() for _ in range(30)]
    assert await mail.enqueue_many(drafts) == 30
    with pytest.raises(BadInput, match="a job with this id exists already"):
        await mail.enqueue_many(drafts[:1])
    async with queue.worker() as worker:
        await worker.run_until_idle()
    for again in (drafts, drafts[7:8]):
        with pytest.raises(BadInput, match="belongs to a job that has ended"):
            await mail.enqueue_many(again)
    assert await queue.counts() == {"mail": {State.COMPLETED: 30}}


# ── two jobs with one id, by COPY ──


@pytest.mark.engine
def test_events_of_a_second_job_continue_the_numbers_of_the_first(db: Database) -> None:
    id = uuid4()
    run_to_end(db, id)
    copy_without_check(db, id)
    other = db.enqueue("mail")
    claims = db.claim("mail")
    db.emit(claims, "again")
    db.emit(claims, "and again")
    numbers = "select number from job_events where job_id = %s order by number"
    assert db.column(numbers, id) == [1, 2, 3]
    assert db.column(numbers, other) == [1, 2]


@pytest.mark.engine
def test_requeue_takes_the_job_that_ended_last_and_still_moves_the_others(db: Database) -> None:
    twice, live, fine = uuid4(), uuid4(), uuid4()
    for id in (twice, live, fine):
        run_to_end(db, id, succeed=False)
    db.clock.advance(timedelta(minutes=1))
    copy_without_check(db, twice)
    db.fail(db.claim("mail"), "the second time")
    copy_without_check(db, live)
    assert db.requeue(twice, live, fine) == {twice, fine}
    assert db.column("select last_error from jobs_live where id = %s", twice) == ["the second time"]
    assert db.counted() == {("mail", State.PENDING): 3, ("mail", State.FAILED): 2}


@pytest.mark.engine
def test_every_read_by_id_returns_the_last_job(db: Database) -> None:
    id = uuid4()
    run_to_end(db, id)
    copy_without_check(db, id)
    statuses = "select status::text from {}"
    assert db.column(statuses.format("jobs_by_id(array[%s::uuid])"), id) == ["pending"]
    assert db.column(statuses.format("watch(array[%s::uuid])"), id) == ["pending"]
    assert len(db.rows("select * from clone(array[%s::uuid])", id)) == 1
    db.emit(db.claim("mail"), "again")
    assert db.value("select delete(array[%s::uuid])", id) == id  # deletes the ended job
    assert db.column("select kind from job_events where job_id = %s", id) == ["seen", "again"]


async def test_a_worker_continues_when_jobs_share_an_id(queue: Queue, dsn: str) -> None:
    """Their events have the same job id, the same numbers and the same day."""

    @queue.job(name="mail")
    async def mail(ctx: JobContext) -> None:
        await ctx.emit("sent")

    db = Database(dsn)
    id = uuid4()
    for _ in range(3):
        copy_without_check(db, id)
        async with queue.worker() as worker:  # a new worker claims at its start, after the COPY
            await worker.run_until_idle()
    await mail.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert db.depth() == {("mail", State.COMPLETED): 4}
    assert db.column("select number from job_events where job_id = %s order by 1", id) == [1, 2, 3]
    db.close()
