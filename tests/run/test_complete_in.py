"""`ctx.complete_in(conn)`: the completion is part of the caller's transaction, with any driver."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from datetime import timedelta
from typing import Any

import asyncpg
import psycopg
import pytest
import sqlalchemy as sa

from howdah import BadInput, JobContext, JobFailed, Queue, StaleLease, State, SyncQueue
from tests.enqueue.transaction_drivers import (
    ASYNC_OR_BLOCKING,
    SYNC,
    AsyncDriver,
    Driver,
    psycopg_connection,
    url_for,
)
from tests.run import process_jobs
from tests.support.waiting import eventually

SOON = timedelta(milliseconds=1)
WRITE = "insert into effects (n) values ({}) returning n"


@pytest.fixture
def effects(dsn: str) -> Generator[psycopg.Connection[Any]]:
    """A connection to a database that has a table of effects."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create table effects (n int)")
        yield connection


def written(effects: psycopg.Connection[Any]) -> list[int]:
    return [row[0] for row in effects.execute("select n from effects order by n")]


@pytest.fixture(params=ASYNC_OR_BLOCKING.values(), ids=list(ASYNC_OR_BLOCKING))
def async_driver(request: pytest.FixtureRequest) -> AsyncDriver:
    return request.param


@pytest.fixture(params=SYNC.values(), ids=list(SYNC))
def sync_driver(request: pytest.FixtureRequest) -> Driver:
    return request.param


# ── the promise, for each driver ────────────────────────────────────────────────────────────────


async def test_an_async_handler_commits_effects_follow_ups_and_completion_together(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any], async_driver: AsyncDriver
) -> None:
    seen: list[State] = []

    @queue.job
    async def order(ctx: JobContext) -> None:
        async with async_driver(dsn) as tx:
            await tx.fetch_value(WRITE.format(1))
            await queue.enqueue("mail", conn=tx.conn)
            await ctx.complete_in(tx.conn, {"it's": [None, "🐘 %s :a"]})
            seen.append((await queue.get(ctx.id)).status)
            await tx.commit()

    handle = await order.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert await handle.result(timeout=20) == {"it's": [None, "🐘 %s :a"]}
    assert seen[0] in (State.CLAIMED, State.RUNNING)
    assert written(effects) == [1]
    assert (await queue.counts())["mail"] == {State.PENDING: 1}


async def test_a_plain_function_commits_effects_follow_ups_and_completion_together(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any], sync_driver: Driver
) -> None:
    sync_queue = SyncQueue(dsn)

    @queue.job
    def order(ctx: JobContext) -> None:
        with sync_driver(dsn) as tx:
            tx.fetch_value(WRITE.format(1))
            sync_queue.enqueue("mail", conn=tx.conn)
            ctx.complete_in(tx.conn, [1])
            tx.commit()

    handle = await order.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    sync_queue.close()
    assert await handle.result(timeout=20) == [1]
    assert written(effects) == [1]
    assert (await queue.counts())["mail"] == {State.PENDING: 1}


async def test_a_completion_that_is_rolled_back_is_retried_with_its_reason(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any], async_driver: AsyncDriver
) -> None:
    @queue.job(backoff=SOON)
    async def order(ctx: JobContext) -> None:
        async with async_driver(dsn) as tx:
            await tx.fetch_value(WRITE.format(ctx.attempt))
            await ctx.complete_in(tx.conn)
            await (tx.rollback() if ctx.attempt == 1 else tx.commit())

    handle = await order.enqueue()
    async with queue.worker():
        await handle.result(timeout=20)
    job = await handle.job()
    assert (job.status, job.attempts) == (State.COMPLETED, 2)
    assert "its transaction was not committed" in job.errors[0]["error"]
    assert written(effects) == [2]


async def test_a_lost_lease_ends_the_callers_transaction(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any], sync_driver: Driver
) -> None:
    """Even a handler that ignores the error and commits has written nothing."""
    errors: list[BaseException] = []
    inside, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    @queue.job
    def order(ctx: JobContext) -> None:
        with sync_driver(dsn) as tx:
            tx.fetch_value(WRITE.format(1))
            inside.set()
            may_end.wait(60)
            try:
                ctx.complete_in(tx.conn)
            except StaleLease as error:
                errors.append(error)
            try:
                tx.commit()
            except Exception as error:
                errors.append(error)
        ended.set()

    handle = await order.enqueue()
    async with queue.worker(silent_after=3600):
        await eventually(inside.is_set)
        effects.execute("update howdah.jobs_live set worker_id = 'other', attempts = 2")
        may_end.set()
        await eventually(ended.is_set)
    assert isinstance(errors[0], StaleLease)
    assert written(effects) == []
    assert (await handle.job()).status is not State.COMPLETED


# ── how an attempt ends ─────────────────────────────────────────────────────────────────────────


async def test_the_attempt_ends_when_its_transaction_does(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """The handler returns and leaves its transaction open: nothing else waits for it."""
    kept: list[psycopg.Connection[Any]] = []
    may_end = asyncio.Event()

    @queue.job
    def order(ctx: JobContext) -> None:
        connection = psycopg.connect(dsn)
        kept.append(connection)
        connection.execute(WRITE.format(1).encode())
        ctx.complete_in(connection)

    @queue.job
    async def other(ctx: JobContext) -> int:
        await ctx.progress(50)
        await may_end.wait()
        return 1

    handle = await order.enqueue()
    async with queue.worker() as worker:
        await eventually(lambda: "job.open_transaction" in caplog.text)
        assert worker.free_slots == 99
        beside = await other.enqueue()
        await eventually(lambda: has_progress(queue, beside.id))
        may_end.set()
        assert await beside.result(timeout=20) == 1
        kept[0].commit()
        kept[0].close()
        await handle.result(timeout=20)
        await worker.run_until_idle()
    assert written(effects) == [1]


async def has_progress(queue: Queue, id: Any) -> bool:
    job = await queue.get(id)
    return (job.status, job.progress) == (State.RUNNING, 50)


async def test_an_abandoned_thread_does_not_make_the_worker_wait_for_its_transaction(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any]
) -> None:
    may_end = threading.Event()
    sent = threading.Event()

    @queue.job(timeout=0.3, max_attempts=1)
    def order(ctx: JobContext) -> None:
        with psycopg.connect(dsn) as connection:
            ctx.complete_in(connection)
            sent.set()
            may_end.wait(60)

    @queue.job
    async def other() -> int:
        return 1

    handle = await order.enqueue()
    async with queue.worker() as worker:
        await eventually(sent.is_set)
        for _ in range(3):
            assert await (await other.enqueue()).result(timeout=20) == 1
        may_end.set()
        await handle.result(timeout=20)
        await worker.run_until_idle()
    assert (await handle.job()).status is State.COMPLETED, "its transaction was committed"


async def test_a_worker_that_stops_waits_for_a_transaction_that_is_about_to_end(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any]
) -> None:
    sent, ended = threading.Event(), threading.Event()

    @queue.job
    def order(ctx: JobContext) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(WRITE.format(1).encode())
            ctx.complete_in(connection)
            sent.set()
            while not ctx.lost:
                ended.wait(0.01)
        ended.set()

    handle = await order.enqueue()
    async with queue.worker(grace=0):
        await eventually(sent.is_set)
    await eventually(ended.is_set)
    job = await handle.job()
    assert (job.status, job.attempts) == (State.COMPLETED, 1)
    assert written(effects) == [1]


async def test_an_idle_transaction_with_a_completion_is_ended_by_the_server(
    queue: Queue, dsn: str
) -> None:
    """So a worker that is frozen between completion and commit keeps nobody waiting."""
    seen: list[str] = []

    @queue.job
    async def order(ctx: JobContext) -> None:
        connection = await asyncpg.connect(dsn)
        async with connection.transaction():
            await ctx.complete_in(connection)
            seen.append(await connection.fetchval("show idle_in_transaction_session_timeout"))
        seen.append(await connection.fetchval("show idle_in_transaction_session_timeout"))
        await connection.execute("set idle_in_transaction_session_timeout = '3s'")
        await connection.close()

    await order.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert seen == ["15s", "0"]


async def test_an_async_handler_may_complete_in_a_thread_of_its_own(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any]
) -> None:
    def work(ctx: JobContext) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(WRITE.format(1).encode())
            ctx.complete_in(connection, "done")

    @queue.job
    async def order(ctx: JobContext) -> None:
        await ctx.progress(20)
        await asyncio.to_thread(work, ctx)

    @queue.job
    def with_a_loop(ctx: JobContext) -> None:
        async def run() -> None:
            connection = await asyncpg.connect(dsn)
            async with connection.transaction():
                await connection.execute(WRITE.format(2))
                await ctx.complete_in(connection, "done")
            await connection.close()

        asyncio.run(run())

    async with queue.worker():
        for job_type in (order, with_a_loop):
            assert await (await job_type.enqueue()).result(timeout=20) == "done"
    assert written(effects) == [1, 2]


async def test_a_transaction_may_be_tried_again_in_the_same_attempt(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any]
) -> None:
    @queue.job(max_attempts=1)
    def order(ctx: JobContext) -> None:
        with psycopg.connect(dsn) as connection:
            for n in range(3):
                connection.execute(WRITE.format(n).encode())
                ctx.complete_in(connection, n)
                if n < 2:
                    connection.rollback()

    handle = await order.enqueue()
    async with queue.worker():
        assert await handle.result(timeout=20) == 2
    assert written(effects) == [2]


async def test_repeatable_read_works_if_nothing_was_reported_meanwhile(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any]
) -> None:
    """A transaction with an old snapshot either commits or is refused by the server."""

    @queue.job(backoff=SOON)
    async def order(ctx: JobContext) -> None:
        connection = await asyncpg.connect(dsn)
        try:
            async with connection.transaction(isolation="repeatable_read"):
                await connection.execute(WRITE.format(ctx.attempt))
                if ctx.attempt == 1:
                    await ctx.progress(50)  # changes the row after the snapshot
                await ctx.complete_in(connection)
        finally:
            await connection.close()

    handle = await order.enqueue()
    async with queue.worker():
        await handle.result(timeout=20)
    job = await handle.job()
    assert "SerializationError" in job.errors[0]["error"]
    assert written(effects) == [2]


# ── bad input ───────────────────────────────────────────────────────────────────────────────────


async def failure(queue: Queue, handle: Any) -> str:
    async with queue.worker():
        with pytest.raises(JobFailed) as caught:
            await handle.result(timeout=20)
    return str(caught.value)


async def test_a_connection_in_autocommit_mode_is_refused(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any]
) -> None:
    @queue.job(max_attempts=1)
    async def with_asyncpg(ctx: JobContext) -> None:
        connection = await asyncpg.connect(dsn)
        try:
            await ctx.complete_in(connection)
        finally:
            await connection.close()

    @queue.job(max_attempts=1)
    def with_psycopg(ctx: JobContext) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            ctx.complete_in(connection)

    @queue.job(max_attempts=1)
    def with_sqlalchemy(ctx: JobContext) -> None:
        engine = sa.create_engine(
            url_for(dsn, "psycopg"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool
        )
        with engine.connect() as connection:
            ctx.complete_in(connection)

    for job_type in (with_asyncpg, with_psycopg, with_sqlalchemy):
        message = await failure(queue, await job_type.enqueue())
        assert "complete_in needs an open transaction" in message


async def test_another_database_is_refused(
    queue: Queue, databases: Any, empty_dsn: str, effects: psycopg.Connection[Any]
) -> None:
    other = databases.create()

    @queue.job(max_attempts=1)
    def order(ctx: JobContext, dsn: str) -> None:
        with psycopg.connect(dsn) as connection:
            ctx.complete_in(connection)

    try:
        for dsn, why in {other: "another database than the queue", empty_dsn: "no howdah"}.items():
            message = await failure(queue, await order.enqueue(dsn=dsn))
            assert why in message
            assert "give a connection to the database of the queue" in message
    finally:
        databases.drop(other)


async def test_a_closed_connection_is_refused(queue: Queue, dsn: str) -> None:
    @queue.job(max_attempts=1)
    def with_psycopg(ctx: JobContext) -> None:
        with psycopg.connect(dsn) as connection:
            pass
        ctx.complete_in(connection)

    @queue.job(max_attempts=1)
    def with_sqlalchemy(ctx: JobContext) -> None:
        with sa.create_engine(url_for(dsn, "psycopg"), poolclass=sa.NullPool).connect() as conn:
            pass
        ctx.complete_in(conn)

    @queue.job(max_attempts=1)
    async def with_asyncpg(ctx: JobContext) -> None:
        connection = await asyncpg.connect(dsn)
        await connection.close()
        await ctx.complete_in(connection)

    for job_type in (with_psycopg, with_sqlalchemy, with_asyncpg):
        assert "conn is closed" in await failure(queue, await job_type.enqueue())


async def test_a_second_completion_is_refused(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any]
) -> None:
    errors: list[str] = []

    @queue.job
    def order(ctx: JobContext) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(WRITE.format(1).encode())
            ctx.complete_in(connection)
            with pytest.raises(BadInput) as caught:
                ctx.complete_in(connection)
            errors.append(str(caught.value))
            connection.commit()
            with pytest.raises(BadInput) as caught:
                ctx.complete_in(connection)
            errors.append(str(caught.value))

    await order.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert ["completed already" in error for error in errors] == [True, True]
    assert written(effects) == [1]


async def test_what_is_no_connection_and_no_result_is_refused(queue: Queue, dsn: str) -> None:
    @queue.job(max_attempts=1)
    def no_connection(ctx: JobContext) -> None:
        ctx.complete_in(dsn)

    @queue.job(max_attempts=1)
    def no_json(ctx: JobContext) -> None:
        with psycopg.connect(dsn) as connection:
            ctx.complete_in(connection, {"at": object()})

    @queue.job(max_attempts=1)
    def too_large(ctx: JobContext) -> None:
        with psycopg.connect(dsn) as connection:
            ctx.complete_in(connection, "x" * 300_000)

    @queue.job(max_attempts=1)
    def async_connection(ctx: JobContext) -> None:
        async def connect() -> Any:
            return await psycopg.AsyncConnection.connect(dsn)

        connection = asyncio.run(connect())
        try:
            ctx.complete_in(connection)
        finally:
            asyncio.run(connection.close())

    why = {
        no_connection: "is not a connection howdah knows",
        no_json: "the result of no_json is not JSON",
        too_large: "the result of too_large",
        async_connection: "give a sync connection",
    }
    for job_type, message in why.items():
        assert message in await failure(queue, await job_type.enqueue())


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_completion_that_is_not_awaited_fails_the_attempt(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any]
) -> None:
    @queue.job(max_attempts=1)
    async def order(ctx: JobContext) -> None:
        connection = await asyncpg.connect(dsn)
        ctx.complete_in(connection)
        await connection.close()

    assert "await complete_in" in await failure(queue, await order.enqueue())


async def test_a_child_process_is_told_what_to_use_instead(dsn: str) -> None:
    async with process_jobs.queue_at(dsn) as queue:
        assert 'run="thread"' in await failure(
            queue, await queue.enqueue("completes", max_attempts=1)
        )


async def test_the_error_of_a_completion_without_a_server_is_the_drivers(
    queue: Queue, dsn: str, effects: psycopg.Connection[Any]
) -> None:
    @queue.job(max_attempts=1)
    def order(ctx: JobContext) -> None:
        with psycopg_connection(dsn) as tx:
            with psycopg.connect(dsn, autocommit=True) as other:
                other.execute("select pg_terminate_backend(%s)", [tx.conn.info.backend_pid])
            ctx.complete_in(tx.conn)

    message = await failure(queue, await order.enqueue())
    assert "terminating connection" in message
    assert written(effects) == []
