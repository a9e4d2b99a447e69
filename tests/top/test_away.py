"""A slow or unreachable database: a message, the last data, and a recovery without help."""

from __future__ import annotations

from contextlib import suppress

import asyncpg
import pytest

from howdah import Queue
from howdah.errors import Unreachable
from howdah.top.poller import Poller
from tests.support.databases import Databases, away
from tests.support.waiting import eventually
from tests.top.support import top, whole_seconds


async def test_it_reports_an_unreachable_database_and_recovers_by_itself(
    dsn: str, databases: Databases
) -> None:
    async with Queue(dsn) as queue, top(queue) as view:
        await queue.enqueue("resize")
        await view.refresh_until("resize")
        with away(databases, dsn):
            await view.wait_for("Cannot reach the database, trying again")
            assert "resize" in view.text  # the last data stays
        await view.wait_for("1 Types")
        await eventually(lambda: "Cannot reach" not in view.text, "the error has gone")
        await queue.enqueue("convert")
        await view.wait_for("convert")


async def test_the_error_of_a_broken_connection_is_gone_after_the_next_poll(dsn: str) -> None:
    async with Queue(dsn) as queue, top(queue) as view:
        connection = await asyncpg.connect(dsn)
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
        await connection.close()
        with suppress(Unreachable):  # the first call on a broken connection fails
            await queue.enqueue("resize")
        await queue.enqueue("resize")
        await view.wait_for("resize")
        await eventually(lambda: "Cannot reach" not in view.text, "the error has gone")


async def test_keys_while_the_database_is_away_say_that_nothing_was_changed(
    dsn: str, databases: Databases
) -> None:
    async with Queue(dsn) as queue, top(queue) as view:
        await queue.enqueue("resize")
        await view.refresh_until("resize")
        with away(databases, dsn):
            await view.press("p")
            await view.wait_for("Nothing was changed: ")
        await eventually(lambda: "Cannot reach" not in view.text, "the error has gone")


async def test_a_poll_that_takes_too_long_keeps_the_data_and_shows_an_error(
    queue: Queue, dsn: str
) -> None:
    await queue.enqueue("resize")
    poller = Poller(queue.store, whole_seconds)
    before = await poller.poll()
    blocker = await asyncpg.connect(dsn)
    async with blocker.transaction():
        await blocker.execute("lock table howdah.workers in access exclusive mode")
        poller.poll_now()
        late = await poller.poll()
    await blocker.close()
    assert late.error is not None
    assert "took longer than 500 ms (this is the data of " in late.error
    assert late.overview == before.overview
    poller.poll_now()
    assert (await poller.poll()).error is None


async def test_a_missing_schema_is_an_error_of_the_command(
    empty_dsn: str,
) -> None:
    from howdah.errors import SchemaMissing
    from howdah.top.app import run

    async with Queue(empty_dsn) as queue:
        with pytest.raises(SchemaMissing):
            await run(queue, read_only=False)
