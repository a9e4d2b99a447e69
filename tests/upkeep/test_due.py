"""A waiting job joins the line on time while a worker is idle, whatever the interval of upkeep.

The upkeep and the polls of these workers are an hour apart: only a notification can start a job.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from howdah import Backoff, Queue, Snooze, Worker
from howdah.states import State
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

HOUR = timedelta(hours=1)
SOON = 0.3  # seconds
INSERT = "insert into howdah.jobs (job_type, run_at) values ('mail', now() + $1::interval)"


@asynccontextmanager
async def _idle_worker(queue: Queue, **options: Any) -> AsyncGenerator[Worker]:
    async with queue.worker(poll=HOUR, upkeep_every=HOUR, **options) as worker:
        await eventually(lambda: queue.store.fetchval("select howdah.has_idle_worker()"))
        yield worker


async def _completed(queue: Queue, count: int = 1) -> None:
    async def done() -> bool:
        return (await queue.counts()).get("mail", {}).get(State.COMPLETED, 0) == count

    await eventually(done, f"{count} completed")


@pytest.fixture
async def mail_queue(dsn: str) -> AsyncGenerator[Queue]:
    async with Queue(dsn) as queue:

        @queue.job
        async def mail() -> None: ...

        yield queue


async def _by_delay(queue: Queue) -> None:
    await queue.enqueue("mail", delay=SOON)


async def _by_run_at(queue: Queue) -> None:
    at: datetime = await queue.store.fetchval("select now()")
    await queue.enqueue("mail", run_at=at.astimezone(UTC) + timedelta(seconds=SOON))


async def _by_enqueue_many(queue: Queue) -> None:
    assert await queue.enqueue_many([queue.draft("mail", delay=SOON)]) == 1


async def _by_sql(queue: Queue) -> None:
    await queue.store.fetch(
        """select howdah.enqueue_many('[{"job_type": "mail", "delay": "0.3 seconds"}]')"""
    )


async def _by_insert(queue: Queue) -> None:
    await queue.store.fetch(INSERT, timedelta(seconds=SOON))


async def _by_copy(queue: Queue) -> None:
    at = await queue.store.fetchval("select now()") + timedelta(seconds=SOON)
    async with queue.store.acquire() as connection:
        await connection.copy_records_to_table(
            "jobs", schema_name="howdah", columns=["job_type", "run_at"], records=[("mail", at)]
        )


async def _by_update(queue: Queue) -> None:
    handle = await queue.enqueue("mail", delay=HOUR)
    await queue.store.fetch(
        "update howdah.jobs set run_at = now() + interval '0.3 seconds' where id = $1", handle.id
    )


async def _by_an_own_transaction(queue: Queue) -> None:
    """Committed when the job has been due for a while."""
    async with queue.store.acquire() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await queue.enqueue("mail", delay=SOON, conn=connection)
        await connection.fetchval("select pg_sleep(0.5)")
        await transaction.commit()


@pytest.mark.parametrize(
    "enqueue",
    [
        _by_delay,
        _by_run_at,
        _by_enqueue_many,
        _by_sql,
        _by_insert,
        _by_copy,
        _by_update,
        _by_an_own_transaction,
    ],
)
async def test_a_job_enqueued_while_workers_sleep_runs_on_time(
    mail_queue: Queue, enqueue: Any
) -> None:
    async with _idle_worker(mail_queue):
        await enqueue(mail_queue)
        await _completed(mail_queue)


async def test_a_retry_and_a_snooze_run_on_time(queue: Queue) -> None:
    tries: list[str] = []

    @queue.job(backoff=Backoff(first=timedelta(seconds=SOON)))
    async def retried() -> None:
        tries.append("retried")
        if tries.count("retried") < 3:
            raise OSError("not yet")

    @queue.job
    async def snoozed() -> None:
        tries.append("snoozed")
        if tries.count("snoozed") < 3:
            raise Snooze(timedelta(seconds=SOON))

    async with _idle_worker(queue):
        handles = [await retried.enqueue(), await snoozed.enqueue()]
        for handle in handles:
            await handle.result(timeout=20)


async def test_a_job_that_is_due_earlier_runs_first(mail_queue: Queue) -> None:
    async with _idle_worker(mail_queue):
        late = await mail_queue.enqueue("mail", delay=HOUR)
        await mail_queue.enqueue("mail", delay=2.0)
        await mail_queue.enqueue("mail", delay=SOON)
        await _completed(mail_queue, 2)
        assert (await late.job()).status is State.PENDING


async def test_jobs_enqueued_before_a_worker_sleeps_run_on_time(mail_queue: Queue) -> None:
    """Several jobs become due one after another, without a message for each."""
    for n in range(4):
        await mail_queue.enqueue("mail", delay=SOON * n)
    async with _idle_worker(mail_queue):
        await _completed(mail_queue, 4)


async def test_other_workers_promote_on_time_when_one_worker_dies(
    dsn: str, mail_queue: Queue
) -> None:
    """The worker that promoted last notifies the others of the next due time."""
    async with Queue(dsn) as other:

        @other.job
        async def mail() -> None: ...

        async with _idle_worker(mail_queue):
            dying = other.worker(poll=HOUR, upkeep_every=HOUR)
            await dying.start()
            await mail_queue.enqueue("mail", delay=0.1)
            await mail_queue.enqueue("mail", delay=1.5)
            await _completed(mail_queue, 1)
            # as after kill -9: its loops end without a message
            for task in dying._tasks:  # pyright: ignore[reportPrivateUsage]
                task.cancel()
            await _completed(mail_queue, 2)
            await dying.stop()


# ── number of messages ─────────────────────────────────────────────────────────────────────────


class _DueListener:
    """A session that receives the messages, and can hold the lock of an idle worker."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self.messages: list[str] = []
        self._connection = connection

    async def listen(self) -> None:
        await self._connection.add_listener("howdah_due", self._receive)

    def _receive(self, _connection: Any, _pid: int, _channel: str, message: Any) -> None:
        self.messages.append(str(message))

    async def sleep(self) -> None:
        await self._connection.execute("select pg_advisory_lock_shared(howdah.lock_space(), 1)")

    async def received(self) -> list[str]:
        """Return the messages so far; they arrive in the order of their commits."""
        await self._connection.execute("select pg_notify('howdah_due', 'last')")
        await eventually(lambda: "last" in self.messages)
        messages = self.messages[: self.messages.index("last")]
        self.messages.clear()
        return messages


@pytest.fixture
async def listener(dsn: str) -> AsyncGenerator[_DueListener]:
    connection = await asyncpg.connect(dsn)
    listener = _DueListener(connection)
    await listener.listen()
    yield listener
    await connection.close()


async def test_no_message_is_sent_while_no_worker_sleeps(
    queue: Queue, listener: _DueListener
) -> None:
    await queue.enqueue("mail", delay=SOON)
    await queue.store.fetch(INSERT, timedelta(seconds=SOON))
    assert await listener.received() == []


async def test_a_message_is_sent_only_for_the_job_that_is_due_first(
    queue: Queue, listener: _DueListener
) -> None:
    await listener.sleep()
    await queue.enqueue("mail")
    assert await listener.received() == [], "the job is ready at once"
    await queue.enqueue("mail", delay=60)
    assert await listener.received() == [""]
    for n in range(20):
        await queue.enqueue("mail", delay=61 + n)
    await queue.store.fetch(INSERT, timedelta(seconds=90))
    await queue.enqueue_many(queue.draft("mail", delay=100 + n) for n in range(20))
    assert await listener.received() == [], "an earlier job is due first"
    await queue.enqueue("mail", delay=30)
    assert await listener.received() == [""]


async def test_a_transaction_sends_one_message(queue: Queue, listener: _DueListener) -> None:
    await listener.sleep()
    async with queue.store.acquire() as connection, connection.transaction():
        for n in range(20):
            await queue.enqueue("mail", delay=20 - n, conn=connection)
    assert await listener.received() == [""]


async def test_a_promotion_sends_when_the_next_job_is_due(
    queue: Queue, listener: _DueListener
) -> None:
    await queue.enqueue("mail", delay=HOUR)
    await listener.sleep()
    rows = await queue.store.fetch("select * from howdah.promote_due('me')")
    assert rows[0]["promoted"] == 0
    (message,) = await listener.received()
    assert message.endswith(', "me"]')
    assert 3_500_000 < float(message[1:].split(",")[0]) <= 3_600_000, "milliseconds"


async def test_invalid_messages_on_the_channel_do_no_harm(mail_queue: Queue) -> None:
    """A message is only a hint: an invalid one causes a check and ends no worker."""
    async with _idle_worker(mail_queue) as worker:
        for message in (
            "x",
            "[]",
            "[null]",
            '[1e400, "me"]',
            '["a", 1]',
            "[-1e30, null]",
            '[null,"o"]',
        ):
            await mail_queue.store.fetch("select pg_notify('howdah_due', $1)", message)
        await mail_queue.store.fetch("select pg_notify('howdah_due', $1)", f'[{10**40}, "o"]')
        await mail_queue.enqueue("mail", delay=SOON)
        await _completed(mail_queue)
        await worker.run_until_idle()
