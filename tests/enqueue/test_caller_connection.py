"""Async code enqueues in its own transaction: a commit creates the job, a rollback does not."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa

from howdah import BadInput, Draft, JobNotFound, PayloadTooLarge, Queue, State
from tests.enqueue.transaction_drivers import (
    ASYNC_OR_BLOCKING,
    AsyncDriver,
    psycopg_async_connection,
)

pytestmark = pytest.mark.slow

SPECIAL_CHARACTERS = {
    "%s": "100 % of :name, $1, {}",
    "'": '"\\u0000 \\\\',
    "🐘": [None, True, 2**70, 0.1],
}

_LIMIT = "max_payload_bytes"


@pytest.fixture(params=ASYNC_OR_BLOCKING.values(), ids=list(ASYNC_OR_BLOCKING))
def driver(request: pytest.FixtureRequest) -> AsyncDriver:
    return request.param


async def count(queue: Queue) -> int:
    return sum(n for states in (await queue.counts()).values() for n in states.values())


async def test_a_job_is_not_seen_before_the_commit_and_run_after_it(
    queue: Queue, dsn: str, driver: AsyncDriver
) -> None:
    @queue.job
    async def double(n: int) -> int:
        return n * 2

    async with queue.worker() as worker, driver(dsn) as tx:
        handle = await double.options(conn=tx.conn).enqueue(n=21)
        await worker.run_until_idle()
        with pytest.raises(JobNotFound):
            await handle.job()
        await tx.commit()
        assert await handle.result(timeout=20) == 42


async def test_a_job_is_rolled_back_with_the_callers_transaction(
    queue: Queue, dsn: str, driver: AsyncDriver
) -> None:
    async with driver(dsn) as tx:
        handle = await queue.enqueue("mail", {"to": 1}, conn=tx.conn)
        many = await queue.enqueue_many((queue.draft("mail") for _ in range(3)), conn=tx.conn)
        assert many == 3
        assert await tx.fetch_value("select count(*) from howdah.jobs") == 4
        await tx.rollback()
    with pytest.raises(JobNotFound):
        await handle.job()
    assert await count(queue) == 0


async def test_every_option_and_every_character_arrives(
    queue: Queue, dsn: str, driver: AsyncDriver
) -> None:
    run_at = datetime(2100, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    async with driver(dsn) as tx:
        at = await queue.enqueue(
            "it's :a %s type",
            SPECIAL_CHARACTERS,
            priority=-7,
            run_at=run_at,
            max_attempts=9,
            conn=tx.conn,
        )
        later = await queue.enqueue("mail", delay=timedelta(days=400, seconds=1.5), conn=tx.conn)
        await tx.commit()
    job = await at.job()
    assert job.data == SPECIAL_CHARACTERS
    assert (job.job_type, job.priority, job.run_at, job.max_attempts) == (
        "it's :a %s type",
        -7,
        run_at,
        9,
    )
    delayed = await later.job()
    assert delayed.run_at is not None
    assert delayed.run_at - delayed.created_at == timedelta(days=400, seconds=1.5)


async def test_many_jobs_take_one_statement_per_thousand(
    queue: Queue, dsn: str, driver: AsyncDriver
) -> None:
    drafts = [queue.draft("mail", {"n": n}, priority=n) for n in range(2500)]
    async with driver(dsn) as tx:
        assert await queue.enqueue_many(iter(drafts), conn=tx.conn) == 2500
        # rows of one statement carry one command number
        assert await tx.fetch_value("select count(distinct cmin::text) from howdah.jobs_live") == 3
        await tx.commit()
    jobs = await queue.jobs(limit=5000)
    assert {(j.id, j.data["n"], j.priority) for j in jobs} == {
        (d.id, n, n) for n, d in enumerate(drafts)
    }


async def test_a_refusal_leaves_the_callers_transaction_usable(
    queue: Queue, dsn: str, driver: AsyncDriver
) -> None:
    @queue.job
    async def resize(path: str, width: int) -> None: ...

    bad: Any = {"path": "a.png", "width": "wide"}
    async with driver(dsn) as tx:
        await tx.fetch_value("select 1")
        with pytest.raises(PayloadTooLarge, match="Store the data elsewhere"):
            await queue.enqueue("mail", {"text": "x" * 300_000}, conn=tx.conn)
        with pytest.raises(BadInput, match="width"):
            await resize.options(conn=tx.conn).enqueue(**bad)
        with pytest.raises(BadInput, match="width"):
            await resize.options(conn=tx.conn).enqueue_many([bad])
        with pytest.raises(BadInput, match="drafts"):
            await queue.enqueue_many([bad], conn=tx.conn)
        handle = await resize.options(conn=tx.conn).enqueue(path="a.png", width=1)
        await tx.commit()
    assert await handle.status() is State.PENDING
    assert await count(queue) == 1


async def test_the_limit_of_the_database_holds_before_the_queue_has_read_it(
    queue: Queue, dsn: str, driver: AsyncDriver
) -> None:
    await queue.store.fetch("update howdah.options set value = '400000' where name = $1", _LIMIT)
    async with Queue(dsn) as fresh, driver(dsn) as tx:
        large = await fresh.enqueue("mail", {"text": "x" * 300_000}, conn=tx.conn)
        with pytest.raises(PayloadTooLarge, match="the limit is 400,000"):
            await fresh.enqueue("mail", {"text": "x" * 500_000}, conn=tx.conn)
        await tx.commit()
    assert len((await queue.get(large.id)).data["text"]) == 300_000


async def test_a_refusal_by_the_database_is_an_error_of_the_driver(
    queue: Queue, dsn: str, empty_dsn: str
) -> None:
    await queue.store.fetch("update howdah.options set value = '1000' where name = $1", _LIMIT)
    async with psycopg_async_connection(dsn) as tx:
        with pytest.raises(psycopg.Error) as refusal:
            await queue.enqueue("mail", {"text": "x" * 1000}, conn=tx.conn)
        assert refusal.value.sqlstate == "HW001"
    conn = await asyncpg.connect(empty_dsn)
    with pytest.raises(asyncpg.InvalidSchemaNameError):
        await queue.enqueue("mail", conn=conn)
    await conn.close()


async def test_an_autocommit_connection_enqueues_at_once(queue: Queue, dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as conn:
        handle = await queue.enqueue("mail", conn=conn)
        assert await handle.status() is State.PENDING


async def test_a_rolled_back_savepoint_removes_its_jobs(queue: Queue, dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    async with conn.transaction():
        kept = await queue.enqueue("mail", conn=conn)
        savepoint = conn.transaction()
        await savepoint.start()
        dropped = await queue.enqueue("mail", conn=conn)
        await savepoint.rollback()
    await conn.close()
    assert [job.id for job in await queue.jobs()] == [kept.id]
    with pytest.raises(JobNotFound):
        await dropped.job()


async def test_after_an_error_in_a_stream_the_caller_decides_about_the_transaction(
    queue: Queue, dsn: str
) -> None:
    async def stream() -> AsyncGenerator[Draft]:
        for n in range(1001):
            yield queue.draft("mail", {"n": n})
        raise LookupError("the source broke")

    async with psycopg_async_connection(dsn) as tx:
        with pytest.raises(LookupError, match="the source broke"):
            await queue.enqueue_many(stream(), conn=tx.conn)
        assert await tx.fetch_value("select count(*) from howdah.jobs") == 1000
        await tx.rollback()
    assert await count(queue) == 0


async def test_large_payloads_are_split_into_several_statements(queue: Queue, dsn: str) -> None:
    draft = queue.draft("mail", {"text": "x" * 250_000})
    async with psycopg_async_connection(dsn) as tx:
        same_size = (queue.draft("mail", {"text": "x" * 250_000}) for _ in range(60))
        assert await queue.enqueue_many(same_size, conn=tx.conn) == 60
        statements = await tx.fetch_value("select count(distinct cmin::text) from howdah.jobs_live")
        assert statements == -(-60 * len(draft.data) // (8 * 1024 * 1024))


async def test_a_value_that_is_not_a_connection_is_refused_with_its_type(
    queue: Queue, dsn: str
) -> None:
    engine = sa.create_engine(dsn.replace("postgresql:", "postgresql+psycopg:", 1))
    with psycopg.connect(dsn) as conn:
        async with asyncpg.create_pool(dsn, min_size=0) as pool:
            for value, name in (
                (object(), "builtins.object"),
                (dsn, "builtins.str"),
                (engine, "sqlalchemy.engine.base.Engine"),
                (conn.cursor(), "psycopg.Cursor"),
                (pool, "asyncpg.pool.Pool"),
            ):
                with pytest.raises(BadInput, match=f"conn={name} is not a connection howdah knows"):
                    await queue.enqueue("mail", conn=value)
    assert await count(queue) == 0
