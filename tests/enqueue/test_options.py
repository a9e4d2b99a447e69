"""Options add up: a later `options()` wins for what it says itself, and forgets nothing else."""

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


def said(job_type: Any) -> dict[str, Any]:
    draft = job_type.draft(n=1)
    return {name: getattr(draft, name) for name in ("priority", "max_attempts", "run_at", "delay")}


def test_what_an_earlier_call_said_stays(pay: Any) -> None:
    first = pay.options(priority=150, delay=5, max_attempts=2)
    assert said(first.options()) == said(first)
    assert said(first.options(priority=30)) == {**said(first), "priority": 30}
    assert said(first.options(max_attempts=1)) == {**said(first), "max_attempts": 1}
    assert said(first)["priority"] == 150, "the first is as it was"
    assert said(pay)["priority"] == 7


def test_of_run_at_and_delay_the_last_counts(pay: Any) -> None:
    wait = timedelta(seconds=5)
    later = pay.options(delay=5).options(run_at=AT)
    assert (said(later)["run_at"], said(later)["delay"]) == (AT, None)
    sooner = pay.options(run_at=AT).options(delay=wait)
    assert (said(sooner)["run_at"], said(sooner)["delay"]) == (None, wait)
    with pytest.raises(BadInput, match="give run_at or delay, not both"):
        pay.options(run_at=AT, delay=5)


def test_nothing_is_as_good_as_any_value(pay: Any) -> None:
    assert said(pay.options(priority=150, delay=5).options(priority=0, delay=0)) == {
        **said(pay),
        "priority": 0,
        "delay": timedelta(),
    }


async def test_a_connection_is_not_forgotten(queue: Queue, dsn: str, pay: Any) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        transaction = connection.transaction()
        await transaction.start()
        own = pay.options(conn=connection).options(priority=150)
        await own.enqueue(n=1)
        await own.options(delay=60).enqueue_many([{"n": 2}])
        await transaction.rollback()
    finally:
        await connection.close()
    assert await queue.counts() == {}


def test_the_sync_twin_forgets_no_connection_either(dsn: str) -> None:
    with SyncQueue(dsn) as sync, psycopg.connect(dsn) as connection:

        @sync.job
        def pay(n: int) -> None: ...

        pay.options(conn=connection).options(priority=150).enqueue(n=1)
        connection.rollback()
        assert sync.counts() == {}
