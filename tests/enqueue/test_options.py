"""A later `options()` replaces the options that it names and keeps the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import psycopg
import pytest

from howdah import BadInput, Queue, SyncQueue

AT = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def pay(queue: Queue) -> Any:
    @queue.job(priority=7, max_attempts=9)
    async def pay(n: int) -> None: ...

    return pay


def options_of(job_type: Any) -> dict[str, Any]:
    draft = job_type.draft(n=1)
    return {name: getattr(draft, name) for name in ("priority", "max_attempts", "run_at", "delay")}


def test_options_of_an_earlier_call_are_kept(pay: Any) -> None:
    first = pay.options(priority=150, delay=5, max_attempts=2)
    assert options_of(first.options()) == options_of(first)
    assert options_of(first.options(priority=30)) == {**options_of(first), "priority": 30}
    assert options_of(first.options(max_attempts=1)) == {**options_of(first), "max_attempts": 1}
    assert options_of(first)["priority"] == 150, "the first job type is unchanged"
    assert options_of(pay)["priority"] == 7


def test_the_last_of_run_at_and_delay_is_used(pay: Any) -> None:
    wait = timedelta(seconds=5)
    later = pay.options(delay=5).options(run_at=AT)
    assert (options_of(later)["run_at"], options_of(later)["delay"]) == (AT, None)
    sooner = pay.options(run_at=AT).options(delay=wait)
    assert (options_of(sooner)["run_at"], options_of(sooner)["delay"]) == (None, wait)
    with pytest.raises(BadInput, match="give run_at or delay, not both"):
        pay.options(run_at=AT, delay=5)


def test_zero_is_a_value_like_any_other(pay: Any) -> None:
    assert options_of(pay.options(priority=150, delay=5).options(priority=0, delay=0)) == {
        **options_of(pay),
        "priority": 0,
        "delay": timedelta(),
    }


async def test_a_later_options_call_keeps_the_connection(queue: Queue, dsn: str, pay: Any) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        transaction = connection.transaction()
        await transaction.start()
        in_transaction = pay.options(conn=connection).options(priority=150)
        await in_transaction.enqueue(n=1)
        await in_transaction.options(delay=60).enqueue_many([{"n": 2}])
        await transaction.rollback()
    finally:
        await connection.close()
    assert await queue.counts() == {}


def test_a_later_options_call_keeps_the_connection_of_a_sync_queue(dsn: str) -> None:
    with SyncQueue(dsn) as sync, psycopg.connect(dsn) as connection:

        @sync.job
        def pay(n: int) -> None: ...

        pay.options(conn=connection).options(priority=150).enqueue(n=1)
        connection.rollback()
        assert sync.counts() == {}
