"""An id means one job: while its job is kept, no way in takes it again.

Where a client goes past the doors all the same, by a COPY of its own, the two jobs do not hurt each
other, and nothing of what is done to many jobs at once fails because of them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4, uuid5

import psycopg
import pytest

from howdah import JobContext, Queue
from howdah.errors import BadInput
from howdah.states import State
from tests.support import Database

NAMESPACE = UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8")

Door = Callable[[Database, UUID], object]

DOORS: dict[str, Door] = {
    "enqueue": lambda db, id: db.enqueue("mail", id=id),
    "enqueue_many": lambda db, id: db.enqueue_many([{"job_type": "mail", "id": str(id)}]),
    "plain INSERT": lambda db, id: db.execute(
        "insert into jobs (id, job_type) values (%s, 'mail')", id
    ),
    "enqueue_now": lambda db, id: db.execute(
        "call howdah.enqueue_now('mail', '{}', 100, null, 3, %s, null)", id
    ),
}
# An old id, one that the database just made, and one that no clock made.
IDS: dict[str, Callable[[Database], UUID]] = {
    "deterministic": lambda db: uuid5(NAMESPACE, "invoice 17"),
    "random": lambda db: uuid4(),
    "new": lambda db: db.value("select howdah.new_id()"),
}


def copy_past_the_doors(db: Database, id: UUID) -> None:
    """What any client with the right to insert may do."""
    with (
        db.connection.cursor() as cursor,
        cursor.copy(b"COPY howdah.jobs_live (id, job_type) FROM STDIN") as copy,
    ):
        copy.write_row((id, "mail"))


def ended(db: Database, id: UUID, *, well: bool = True) -> None:
    db.enqueue("mail", id=id, max_attempts=1)
    claims = db.claim("mail")
    db.emit(claims, "seen")
    if well:
        db.complete(claims)
    else:
        db.fail(claims)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("door", "kind"),
    # enqueue_now does not look for an id that was made within the last minute
    [(door, kind) for door in DOORS for kind in IDS if (door, kind) != ("enqueue_now", "new")],
)
def test_the_id_of_an_ended_job_is_refused_in_words(db: Database, door: str, kind: str) -> None:
    id = IDS[kind](db)
    ended(db, id)
    with pytest.raises(psycopg.Error) as refused:
        DOORS[door](db, id)
    assert refused.value.sqlstate == "HW002"
    assert str(id) in str(refused.value)
    assert "requeue that job" in (refused.value.diag.message_hint or "")
    assert db.counted() == {("mail", State.COMPLETED): 1}


@pytest.mark.engine
@pytest.mark.parametrize("door", DOORS)
def test_the_id_of_a_live_job_is_refused(db: Database, door: str) -> None:
    id = uuid4()
    db.enqueue("mail", id=id)
    with pytest.raises(psycopg.errors.UniqueViolation):
        DOORS[door](db, id)
    assert db.counted() == {("mail", State.PENDING): 1}


@pytest.mark.engine
@pytest.mark.parametrize("count", [2, 50])
def test_one_used_id_in_a_set_refuses_the_set(db: Database, count: int) -> None:
    ids: list[UUID] = [db.value("select howdah.new_id()") for _ in range(count)]
    ended(db, ids[1])
    with pytest.raises(psycopg.Error) as refused:
        db.enqueue_many([{"job_type": "mail", "id": str(id)} for id in ids])
    assert refused.value.sqlstate == "HW002"
    assert db.counted() == {("mail", State.COMPLETED): 1}


@pytest.mark.engine
def test_an_id_is_free_again_once_its_job_is_gone(db: Database) -> None:
    id = uuid4()
    ended(db, id)
    assert db.value("select howdah.delete(array[%s::uuid])", id) == id
    db.enqueue("mail", id=id)
    assert [claim.id for claim in db.claim("mail")] == [id]


async def test_a_draft_is_refused_the_second_time(queue: Queue) -> None:
    @queue.job
    async def mail() -> None: ...

    drafts = [mail.draft() for _ in range(30)]
    assert await mail.enqueue_many(drafts) == 30
    with pytest.raises(BadInput, match="a job with this id is there already"):
        await mail.enqueue_many(drafts[:1])
    async with queue.worker() as worker:
        await worker.run_until_idle()
    for again in (drafts, drafts[7:8]):
        with pytest.raises(BadInput, match="belongs to a job that has ended"):
            await mail.enqueue_many(again)
    assert await queue.counts() == {"mail": {State.COMPLETED: 30}}


# ── past the doors ──


@pytest.mark.engine
def test_events_of_a_second_job_go_on_where_those_of_the_first_ended(db: Database) -> None:
    id = uuid4()
    ended(db, id)
    copy_past_the_doors(db, id)
    other = db.enqueue("mail")
    claims = db.claim("mail")
    db.emit(claims, "again")
    db.emit(claims, "and again")
    numbers = "select number from job_events where job_id = %s order by number"
    assert db.column(numbers, id) == [1, 2, 3]
    assert db.column(numbers, other) == [1, 2]


@pytest.mark.engine
def test_requeue_takes_the_job_that_ended_last_and_no_other_fails_with_it(db: Database) -> None:
    twice, live, fine = uuid4(), uuid4(), uuid4()
    for id in (twice, live, fine):
        ended(db, id, well=False)
    db.clock.advance(timedelta(minutes=1))
    copy_past_the_doors(db, twice)
    db.fail(db.claim("mail"), "the second time")
    copy_past_the_doors(db, live)
    assert db.requeue(twice, live, fine) == {twice, fine}
    assert db.column("select last_error from jobs_live where id = %s", twice) == ["the second time"]
    assert db.counted() == {("mail", State.PENDING): 3, ("mail", State.FAILED): 2}


@pytest.mark.engine
def test_every_answer_about_an_id_is_about_its_last_job(db: Database) -> None:
    id = uuid4()
    ended(db, id)
    copy_past_the_doors(db, id)
    statuses = "select status::text from {}"
    assert db.column(statuses.format("jobs_by_id(array[%s::uuid])"), id) == ["pending"]
    assert db.column(statuses.format("watch(array[%s::uuid])"), id) == ["pending"]
    assert len(db.rows("select * from clone(array[%s::uuid])", id)) == 1
    db.emit(db.claim("mail"), "again")
    assert db.value("select delete(array[%s::uuid])", id) == id  # the ended one
    assert db.column("select kind from job_events where job_id = %s", id) == ["seen", "again"]


async def test_a_worker_outlives_jobs_that_share_an_id(queue: Queue, dsn: str) -> None:
    """Their events collide: the same numbers, of the same job, on the same day."""

    @queue.job(name="mail")
    async def mail(ctx: JobContext) -> None:
        await ctx.emit("sent")

    db = Database(dsn)
    id = uuid4()
    for _ in range(3):
        copy_past_the_doors(db, id)
        async with queue.worker() as worker:  # a new one each time: it looks after the COPY
            await worker.run_until_idle()
    await mail.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert db.depth() == {("mail", State.COMPLETED): 4}
    assert db.column("select number from job_events where job_id = %s order by 1", id) == [1, 2, 3]
    db.close()
