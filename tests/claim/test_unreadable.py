"""A job that cannot be read fails with a reason, and the worker continues.

Such a job cannot be enqueued, so these tests disable the checks. Its payload is a few megabytes on
disk and more than a gigabyte as text, which the server cannot send.
"""

from __future__ import annotations

from collections.abc import Generator
from uuid import UUID

import psycopg
import pytest

from howdah import Queue
from howdah.states import State
from tests.support import Database

# 100,000 numbers of 12,000 digits each, in 800 kB
UNREADABLE = (
    "(select jsonb_build_object('a', jsonb_agg(1e12000::numeric)) from generate_series(1, 100000))"
)
LONG_TEXT = "jsonb_build_object('a', repeat(E'\\x01', 200000000))"  # six times as long as text


@pytest.fixture
def unguarded(dsn: str) -> Generator[Database]:
    db = Database(dsn)
    db.execute("alter domain json_object drop constraint payload_is_within_max_payload_bytes")
    yield db
    db.close()


def insert_unreadable(db: Database, priority: int = 100) -> UUID:
    return db.value(
        "insert into jobs_live (job_type, priority, data) "
        f"values ('mail', %s, {UNREADABLE}) returning id",
        priority,
    )


@pytest.mark.engine
@pytest.mark.slow
def test_an_unreadable_job_cannot_be_enqueued(db: Database) -> None:
    for sql in (
        f"select enqueue('mail', {UNREADABLE})",
        f"insert into jobs (job_type, data) values ('mail', {UNREADABLE})",
        f"insert into jobs_live (job_type, data) values ('mail', {UNREADABLE})",
        f"update jobs set data = {UNREADABLE}",
        f"insert into jobs_live (job_type, data) values ('mail', {LONG_TEXT})",
    ):
        db.enqueue("other")
        with pytest.raises(psycopg.Error) as refused:
            db.execute(sql)
        assert refused.value.sqlstate in ("HW001", "54000"), sql
    assert set(db.counted()) == {("other", State.PENDING)}


@pytest.mark.slow
async def test_the_worker_fails_the_unreadable_job_and_continues(
    queue: Queue, unguarded: Database
) -> None:
    @queue.job
    async def mail(n: int = 0) -> None: ...

    first = await mail.enqueue(n=1)
    bad = [insert_unreadable(unguarded, priority) for priority in (150, 100)]
    last = await mail.enqueue(n=2)
    async with queue.worker(batch_size=2) as worker:
        await worker.run_until_idle()
    assert {(await queue.get(handle.id)).status for handle in (first, last)} == {State.COMPLETED}
    for id in bad:
        job = await queue.get(id)
        assert job.status is State.FAILED
        assert "its payload cannot be read" in (job.last_error or "")
        assert (job.attempts, job.data) == (1, {})


@pytest.mark.slow
async def test_a_claim_by_hand_returns_the_readable_jobs(queue: Queue, unguarded: Database) -> None:
    bad = insert_unreadable(unguarded, priority=150)
    fine = await queue.enqueue("mail", {"n": 1})
    claimed = await queue.claim(["mail"], worker_id="by hand")
    assert [job.id for job in claimed] == [fine.id]
    assert (await queue.get(bad)).status is State.FAILED


async def test_a_claim_that_fails_for_another_reason_fails_nothing(
    queue: Queue, unguarded: Database
) -> None:
    await queue.enqueue("mail", {"n": 1})
    unguarded.execute(
        "create or replace function howdah.claim_job_batch(p_worker_id text, p_job_types text[], "
        "p_batch_size int default 10) returns setof howdah.jobs language plpgsql as "
        "$$ begin raise exception 'broken' using errcode = '54000'; end $$"
    )
    with pytest.raises(Exception, match="broken"):
        await queue.claim(["mail"], worker_id="by hand")
    assert await queue.counts() == {"mail": {State.PENDING: 1}}
