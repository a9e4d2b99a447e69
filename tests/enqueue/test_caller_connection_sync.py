"""Sync code enqueues in its own transaction and in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Generator
from importlib import import_module
from typing import Any

import pytest
from sqlalchemy import event

from howdah import BadInput, JobNotFound, PayloadTooLarge, State, SyncQueue
from tests.enqueue.transaction_drivers import (
    ASYNC,
    SYNC,
    AsyncDriver,
    Driver,
    django_connection,
    sqlalchemy_connection,
)

pytestmark = pytest.mark.slow


@pytest.fixture
def sync(dsn: str) -> Generator[SyncQueue]:
    with SyncQueue(dsn) as queue:
        yield queue


@pytest.fixture(params=SYNC.values(), ids=list(SYNC))
def driver(request: pytest.FixtureRequest) -> Driver:
    return request.param


def test_a_job_is_not_seen_before_the_commit_and_run_after_it(
    sync: SyncQueue, dsn: str, driver: Driver
) -> None:
    @sync.job
    def double(n: int) -> int:
        return n * 2

    with sync.worker(concurrency=4) as worker, driver(dsn) as tx:
        handle = double.options(conn=tx.conn).enqueue(n=21)
        worker.run_until_idle()
        with pytest.raises(JobNotFound):
            handle.job()
        tx.commit()
        assert handle.result(timeout=20) == 42


def test_a_job_is_rolled_back_with_the_callers_transaction(
    sync: SyncQueue, dsn: str, driver: Driver
) -> None:
    with driver(dsn) as tx:
        handle = sync.enqueue("mail", {"to": 1}, conn=tx.conn)
        assert sync.enqueue_many((sync.draft("mail") for _ in range(3)), conn=tx.conn) == 3
        assert tx.fetch_value("select count(*) from howdah.jobs") == 4
        tx.rollback()
    with pytest.raises(JobNotFound):
        handle.job()
    assert sync.counts() == {}


def test_many_jobs_take_one_statement_per_thousand(
    sync: SyncQueue, dsn: str, driver: Driver
) -> None:
    drafts = [sync.draft("mail", {"n": n}) for n in range(1500)]
    with driver(dsn) as tx:
        assert sync.enqueue_many(iter(drafts), conn=tx.conn) == 1500
        assert tx.fetch_value("select count(distinct cmin::text) from howdah.jobs_live") == 2
        tx.commit()
    assert {job.id for job in sync.jobs(limit=5000)} == {draft.id for draft in drafts}


def test_a_refusal_leaves_the_callers_transaction_usable(
    sync: SyncQueue, dsn: str, driver: Driver
) -> None:
    with driver(dsn) as tx:
        tx.fetch_value("select 1")
        with pytest.raises(PayloadTooLarge):
            sync.enqueue("mail", {"text": "x" * 300_000}, conn=tx.conn)
        handle = sync.enqueue("mail", conn=tx.conn)
        tx.commit()
    assert handle.status() is State.PENDING
    assert sync.counts() == {"mail": {State.PENDING: 1}}


def test_the_connection_is_used_in_the_thread_of_the_caller(sync: SyncQueue, dsn: str) -> None:
    used_in: set[int] = set()

    @sync.job
    def greet(name: str) -> None: ...

    def record_thread(*_: Any) -> None:
        used_in.add(threading.get_ident())

    with sqlalchemy_connection("psycopg")(dsn) as tx:
        event.listen(tx.conn, "before_cursor_execute", record_thread)
        sync.enqueue("mail", conn=tx.conn)
        sync.enqueue_many([sync.draft("mail")], conn=tx.conn)
        greet.options(conn=tx.conn).enqueue(name="you")
        greet.options(conn=tx.conn).enqueue_many([{"name": "you"}])
        tx.commit()
    assert used_in == {threading.get_ident()}
    assert sync.counts() == {"mail": {State.PENDING: 2}, "greet": {State.PENDING: 2}}


@pytest.mark.parametrize("driver", ASYNC.values(), ids=list(ASYNC))
async def test_an_async_connection_is_refused(dsn: str, driver: AsyncDriver) -> None:
    sync = SyncQueue(dsn)

    @sync.job
    def greet(name: str) -> None: ...

    async with driver(dsn) as tx:
        for enqueue in (
            lambda: sync.enqueue("mail", conn=tx.conn),
            lambda: sync.enqueue_many([sync.draft("mail")], conn=tx.conn),
            lambda: greet.options(conn=tx.conn).enqueue(name="you"),
            lambda: greet.options(conn=tx.conn).enqueue_many([{"name": "you"}]),
        ):
            with pytest.raises(BadInput, match=r"async connection \(.*\), which sync code cannot"):
                enqueue()
        assert await tx.fetch_value("select count(*) from howdah.jobs") == 0


def test_an_error_after_the_enqueue_rolls_the_job_back_in_django(sync: SyncQueue, dsn: str) -> None:
    with django_connection("default")(dsn) as tx:
        tx.rollback()  # ends the transaction that the driver began
        db: Any = import_module("django.db")
        broken = db.transaction.atomic()
        broken.__enter__()
        sync.enqueue("mail", conn=db.connection)
        broken.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
        with db.transaction.atomic():
            handle = sync.enqueue("mail", conn=db.connection)
        assert [job.id for job in sync.jobs()] == [handle.id]


def test_a_django_connection_to_another_database_system_is_refused(sync: SyncQueue) -> None:
    sqlite: Any = import_module("django.db.backends.sqlite3.base").DatabaseWrapper(
        {"NAME": ":memory:"}
    )
    with pytest.raises(BadInput, match="to sqlite: give a connection to PostgreSQL"):
        sync.enqueue("mail", conn=sqlite)
