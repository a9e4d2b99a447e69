"""A database that is slow or goes away: a calm line, the old picture, and back by itself."""

from __future__ import annotations

from contextlib import suppress

import asyncpg
import pytest

from howdah import Queue
from howdah.errors import Unreachable
from howdah.top.heart import Heart
from tests.support.databases import Databases, away
from tests.support.waiting import eventually
from tests.top.support import top, whole_seconds


async def test_it_says_that_the_database_is_away_and_comes_back_by_itself(
    dsn: str, databases: Databases
) -> None:
    async with Queue(dsn) as queue, top(queue) as shown:
        await queue.enqueue("resize")
        await shown.looks_until("resize")
        with away(databases, dsn):
            await shown.sees("The database is away, trying again")
            assert "resize" in shown.text  # the picture stays
        await shown.sees("1 Types")
        await eventually(lambda: "away" not in shown.text, "it is back")
        await queue.enqueue("convert")
        await shown.sees("convert")


async def test_a_broken_connection_is_forgotten_after_the_next_look(dsn: str) -> None:
    async with Queue(dsn) as queue, top(queue) as shown:
        connection = await asyncpg.connect(dsn)
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
        await connection.close()
        with suppress(Unreachable):  # the first to use a connection finds out that it is broken
            await queue.enqueue("resize")
        await queue.enqueue("resize")
        await shown.sees("resize")
        await eventually(lambda: "away" not in shown.text, "it is back")


async def test_keys_while_the_database_is_away_say_that_nothing_was_done(
    dsn: str, databases: Databases
) -> None:
    async with Queue(dsn) as queue, top(queue) as shown:
        await queue.enqueue("resize")
        await shown.looks_until("resize")
        with away(databases, dsn):
            await shown.press("p")
            await shown.sees("Not done: ")
        await eventually(lambda: "away" not in shown.text, "it is back")


async def test_a_look_that_takes_too_long_leaves_the_picture_and_says_so(
    queue: Queue, dsn: str
) -> None:
    await queue.enqueue("resize")
    heart = Heart(queue.store, whole_seconds)
    before = await heart.look()
    blocker = await asyncpg.connect(dsn)
    async with blocker.transaction():
        await blocker.execute("lock table howdah.workers in access exclusive mode")
        heart.hurry()
        late = await heart.look()
    await blocker.close()
    assert late.trouble is not None
    assert "took longer than 500 ms (this is of " in late.trouble
    assert late.overview == before.overview
    heart.hurry()
    assert (await heart.look()).trouble is None


async def test_nobody_to_talk_to_from_the_beginning_is_an_error_of_the_command(
    empty_dsn: str,
) -> None:
    from howdah.errors import SchemaMissing
    from howdah.top.app import run

    async with Queue(empty_dsn) as queue:
        with pytest.raises(SchemaMissing):
            await run(queue, read_only=False)
