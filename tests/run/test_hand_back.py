"""A worker hands back a job whose payload other code may be able to read."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from howdah import JobContext, Queue, State
from howdah.observe import Reason, problems
from tests.support import Claimed, Database
from tests.support.waiting import eventually

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


# ── in SQL ──


def handed_back(db: Database, signature: str | None = None) -> Claimed:
    """Claim the one job there is, and hand it back."""
    db.execute("select howdah.promote()")
    (claim,) = db.claim("mail", worker="w")
    assert db.hand_back([claim], "missing 'to'", signature) == {claim.id}
    return claim


@pytest.mark.engine
def test_the_attempt_is_not_counted_and_the_wait_grows_to_a_minute(db: Database) -> None:
    id = db.enqueue("mail", max_attempts=1)
    waits: list[timedelta] = []
    for _ in range(10):
        handed_back(db)
        job = db.job(id)
        assert (job["attempts"], job["status"], job["errors"]) == (0, "pending", [])
        wait = job["run_at"] - db.value("select howdah.clock()")
        waits.append(timedelta(seconds=round(wait.total_seconds())))
        db.clock.advance(wait + timedelta(milliseconds=1))
    assert waits[0] == SECOND
    assert waits == sorted(waits)
    assert waits[-1] == MINUTE
    assert db.job(id)["last_error"] == "worker w cannot read its payload: missing 'to'"


@pytest.mark.engine
def test_a_job_fails_when_no_worker_could_read_it_for_a_day(db: Database) -> None:
    id = db.enqueue("mail", max_attempts=1)
    handed_back(db)
    db.clock.advance(timedelta(hours=23, minutes=59))
    handed_back(db)
    assert db.state_of(id) is State.PENDING
    db.clock.advance(timedelta(minutes=2))
    handed_back(db)
    job = db.job(id)
    assert (job["status"], job["attempts"]) == ("failed", 1)
    assert job["last_error"].startswith("no worker could read its payload for 1 day")
    assert "missing 'to'" in job["last_error"]


@pytest.mark.engine
def test_the_time_until_it_fails_is_an_option(db: Database) -> None:
    set_to = "update howdah.options set value = %s where name = 'fail_unread_after'"
    db.execute(set_to, "0")
    try:
        id = db.enqueue("mail")
        handed_back(db)
    finally:
        db.execute(set_to, "1 day")
    assert db.job(id)["status"] == "failed"


@pytest.mark.engine
def test_a_wrong_value_fails_at_once_unless_newer_code_is_registered(db: Database) -> None:
    def outcome(signature: str | None) -> str:
        id = db.enqueue("mail")
        handed_back(db, signature)
        status = db.job(id)["status"]
        if status == "pending":
            db.cancel(id)
        return status

    assert outcome("mine") == "failed"  # no type is registered
    db.execute(
        """select howdah.register_job_types('n', '[{"name": "mail", "signature": "newer"}]')"""
    )
    assert outcome("mine") == "pending"
    assert outcome("newer") == "failed"
    assert outcome(None) == "pending"


@pytest.mark.engine
def test_each_job_of_a_batch_waits_or_fails_by_its_own_signature(db: Database) -> None:
    ids = [db.enqueue("mail") for _ in range(4)]
    claims = db.claim("mail", worker="w")
    rows = db.rows(
        "select * from howdah.hand_back('w', %s, %s, %s, %s)",
        ids,
        [1, 1, 7, 1],  # the third lease is not ours
        ["a", "b", "c", "d"],
        [None, "x", None, None],
    )
    assert {row["id"]: row["status"] for row in rows} == {
        ids[0]: "pending",
        ids[1]: "failed",
        ids[3]: "pending",
    }
    assert db.state_of(claims[2].id) is State.CLAIMED


@pytest.mark.engine
def test_a_worker_that_can_read_the_job_ends_the_wait(db: Database) -> None:
    id = db.enqueue("mail")
    handed_back(db)
    db.clock.advance(MINUTE)
    db.promote()
    db.retry(db.claim("mail", worker="able"))
    assert db.job(id)["unread_since"] is None


# ── by a worker ──


class Order(msgspec.Struct):
    number: int
    note: str


BAD: dict[str, Any] = {
    "one field too many": {"path": "a", "width": 1, "height": 2},
    "a missing field": {"path": "a"},
    "a missing nested field": {"path": "a", "width": 1, "order": {"number": 1}},
}


@pytest.mark.parametrize("payload", BAD.values(), ids=BAD)
@pytest.mark.parametrize("run", ["async", "thread"])
async def test_a_payload_with_other_fields_waits_for_a_worker_that_can_read_it(
    dsn: str, payload: dict[str, Any], run: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with Queue(dsn) as old, Queue(dsn) as new:
        ran: list[dict[str, Any]] = []
        if run == "async":

            @old.job(name="resize", max_attempts=1)
            async def resize(path: str, width: int, order: Order | None = None) -> None: ...
        else:

            @old.job(name="resize", max_attempts=1)
            def resize_(path: str, width: int, order: Order | None = None) -> None: ...

        @new.job(name="resize", max_attempts=1)
        async def resize_better(
            ctx: JobContext,
            path: str,
            width: int = 3,
            height: int = 4,
            order: dict[str, Any] | None = None,
        ) -> int:
            ran.append({"path": path})
            return ctx.attempt

        (draft,) = [Queue(dsn).draft("resize", payload, max_attempts=1)]
        await old.enqueue_many([draft])
        handle = old.handle(draft.id)
        with caplog.at_level(logging.WARNING):
            async with old.worker() as worker:
                async with asyncio.timeout(30):
                    await worker.run_until_idle()  # a job that was handed back does not count
                await eventually(lambda: "job.hand_back" in caplog.text)
                sentences: list[str] = []

                async def unread() -> bool:  # the worker claims it again and again
                    why = await old.why(draft.id)
                    sentences.append(why.sentence)
                    return why.reason is Reason.UNREAD

                await eventually(unread)
                assert sentences[-1].startswith(f"Worker {worker.id} cannot read its payload")
                assert "waits for a worker that can read it, until" in sentences[-1]
            job = await handle.job()
            assert (job.status, job.attempts, ran) == (State.PENDING, 0, [])
        async with new.worker():
            assert await handle.result(timeout=30) == 1
        assert ran == [{"path": "a"}]


async def test_a_wrong_value_fails_at_once_where_the_code_is_the_newest(queue: Queue) -> None:
    @queue.job(max_attempts=5)
    async def resize(width: int) -> None: ...

    (draft,) = [Queue(queue.store.shown_dsn).draft("resize", {"width": "wide"})]
    await queue.enqueue_many([draft])
    async with queue.worker() as worker:
        handle = queue.handle(draft.id)
        await worker.run_until_idle()

        async def failed() -> bool:
            return (await handle.job()).status is State.FAILED

        await eventually(failed, "the job has failed")
    job = await handle.job()
    assert job.attempts == 1
    assert "Expected `int`, got `str`" in (job.last_error or "")
    assert "the payload does not fit resize" in (job.last_error or "")


async def test_the_problems_name_types_that_cannot_be_read(queue: Queue) -> None:
    @queue.job
    async def resize(width: int) -> None: ...

    await queue.enqueue_many([Queue(queue.store.shown_dsn).draft("resize", {})])
    async with queue.worker() as worker:
        await worker.run_until_idle()

        async def is_reported() -> bool:
            return any(problem.kind == "unread" for problem in await problems(queue.store))

        await eventually(is_reported)
    (problem,) = [each for each in await problems(queue.store) if each.kind == "unread"]
    assert problem.job_type == "resize"
    assert problem.sentence.startswith("1 job of resize cannot be read by the workers that met it.")


async def test_a_job_that_was_handed_back_is_not_measured_as_a_failure(queue: Queue) -> None:
    @queue.job
    async def resize(width: int) -> None: ...

    await queue.enqueue_many([Queue(queue.store.shown_dsn).draft("resize", {})])
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert await queue.store.fetchval("select count(*) from howdah.measures") == 0
