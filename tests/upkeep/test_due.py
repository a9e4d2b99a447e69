"""A waiting job joins the line on time while a worker is idle, however far apart its rounds are.

The rounds and polls of these workers are an hour apart: only being told can make a job run.
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
async def test_a_job_that_comes_while_workers_sleep_runs_on_time(
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


async def test_a_job_that_is_due_before_the_one_waited_for_runs_first(mail_queue: Queue) -> None:
    async with _idle_worker(mail_queue):
        late = await mail_queue.enqueue("mail", delay=HOUR)
        await mail_queue.enqueue("mail", delay=2.0)
        await mail_queue.enqueue("mail", delay=SOON)
        await _completed(mail_queue, 2)
        assert (await late.job()).status is State.PENDING


async def test_what_was_waiting_before_a_worker_fell_asleep_runs_on_time(mail_queue: Queue) -> None:
    """Several of them, one after another, without a message each."""
    for n in range(4):
        await mail_queue.enqueue("mail", delay=SOON * n)
    async with _idle_worker(mail_queue):
        await _completed(mail_queue, 4)


async def test_the_others_know_the_time_too_when_one_worker_dies(
    dsn: str, mail_queue: Queue
) -> None:
    """Whoever promoted last knows when the next is due, and tells."""
    async with Queue(dsn) as other:

        @other.job
        async def mail() -> None: ...

        async with _idle_worker(mail_queue):
            dying = other.worker(poll=HOUR, upkeep_every=HOUR)
            await dying.start()
            await mail_queue.enqueue("mail", delay=0.1)
            await mail_queue.enqueue("mail", delay=1.5)
            await _completed(mail_queue, 1)
            # as after kill -9: its loops end, and nobody is told
            for task in dying._tasks:  # pyright: ignore[reportPrivateUsage]
                task.cancel()
            await _completed(mail_queue, 2)
            await dying.stop()


# ── what it costs ─────────────────────────────────────────────────────────────────────────


class _Heard:
    """Whoever listens, beside a sleeping worker."""

    def __init__(self, connection: asyncpg.Connection[asyncpg.Record]) -> None:
        self.messages: list[str] = []
        self._connection = connection

    async def listen(self) -> None:
        await self._connection.add_listener("howdah_due", self._hear)

    def _hear(self, _connection: Any, _pid: int, _channel: str, message: Any) -> None:
        self.messages.append(str(message))

    async def sleep(self) -> None:
        await self._connection.execute("select pg_advisory_lock_shared(howdah.lock_space(), 1)")

    async def all_of_them(self) -> list[str]:
        """Return what was heard so far; messages come in the order of their commits."""
        await self._connection.execute("select pg_notify('howdah_due', 'last')")
        await eventually(lambda: "last" in self.messages)
        found = self.messages[: self.messages.index("last")]
        self.messages.clear()
        return found


@pytest.fixture
async def heard(dsn: str) -> AsyncGenerator[_Heard]:
    connection = await asyncpg.connect(dsn)
    made = _Heard(connection)
    await made.listen()
    yield made
    await connection.close()


async def test_nobody_is_told_while_nobody_sleeps(queue: Queue, heard: _Heard) -> None:
    await queue.enqueue("mail", delay=SOON)
    await queue.store.fetch(INSERT, timedelta(seconds=SOON))
    assert await heard.all_of_them() == []


async def test_only_the_job_that_is_due_first_is_told(queue: Queue, heard: _Heard) -> None:
    await heard.sleep()
    await queue.enqueue("mail")
    assert await heard.all_of_them() == [], "it stands in line"
    await queue.enqueue("mail", delay=60)
    assert await heard.all_of_them() == [""]
    for n in range(20):
        await queue.enqueue("mail", delay=61 + n)
    await queue.store.fetch(INSERT, timedelta(seconds=90))
    await queue.enqueue_many(queue.draft("mail", delay=100 + n) for n in range(20))
    assert await heard.all_of_them() == [], "an earlier one is waited for"
    await queue.enqueue("mail", delay=30)
    assert await heard.all_of_them() == [""]


async def test_a_transaction_tells_once(queue: Queue, heard: _Heard) -> None:
    await heard.sleep()
    async with queue.store.acquire() as connection, connection.transaction():
        for n in range(20):
            await queue.enqueue("mail", delay=20 - n, conn=connection)
    assert await heard.all_of_them() == [""]


async def test_who_promotes_tells_when_the_next_is_due(queue: Queue, heard: _Heard) -> None:
    await queue.enqueue("mail", delay=HOUR)
    await heard.sleep()
    rows = await queue.store.fetch("select * from howdah.promote_due('me')")
    assert rows[0]["promoted"] == 0
    (message,) = await heard.all_of_them()
    assert message.endswith(', "me"]')
    assert 3_500_000 < float(message[1:].split(",")[0]) <= 3_600_000, "milliseconds"


async def test_anybody_may_say_anything_on_the_channel(mail_queue: Queue) -> None:
    """A message is a hint: what makes no sense is as good as any, and costs no worker."""
    async with _idle_worker(mail_queue) as worker:
        for word in (
            "x",
            "[]",
            "[null]",
            '[1e400, "me"]',
            '["a", 1]',
            "[-1e30, null]",
            '[null,"o"]',
        ):
            await mail_queue.store.fetch("select pg_notify('howdah_due', $1)", word)
        await mail_queue.store.fetch("select pg_notify('howdah_due', $1)", f'[{10**40}, "o"]')
        await mail_queue.enqueue("mail", delay=SOON)
        await _completed(mail_queue)
        await worker.run_until_idle()
