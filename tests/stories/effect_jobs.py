"""The jobs of the stories that have an effect in the same database, exactly once.

    howdah worker tests.stories.effect_jobs:queue

STORY_EFFECTS=apart is a broken version of this code: it commits the effect, and the worker writes
the completion. A handler may linger on its first attempt, when it has written its effect, until it
has lost its job or its connection.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from howdah import JobContext
from tests.stories.effects import INSERT
from tests.stories.jobs import CALL_TIMEOUT, MANY, SOON, Ending, at_work
from tests.stories.limited_jobs import queue

APART = os.environ.get("STORY_EFFECTS") == "apart"
_ASYNCPG = INSERT.format("$1", "$2", "$3")
_PSYCOPG = INSERT.format("%s", "%s", "%s").encode()


@queue.job(max_attempts=MANY, backoff=SOON)
async def write(ctx: JobContext, token: str) -> Ending | None:
    """Write in a transaction of howdah's."""
    return await _write_apart(ctx, 0) if APART else await _write(ctx, 0)


@queue.job(max_attempts=MANY, backoff=SOON)
async def linger(ctx: JobContext, token: str, seconds: float) -> Ending | None:
    """Do the same, and linger."""
    return await _write_apart(ctx, seconds) if APART else await _write(ctx, seconds)


@queue.job(max_attempts=MANY, backoff=SOON)
def write_in_thread(ctx: JobContext, token: str) -> None:
    """Write in a transaction of the handler's own."""
    _write_in_thread(ctx, 0)


@queue.job(max_attempts=MANY, backoff=SOON)
def linger_in_thread(ctx: JobContext, token: str, seconds: float) -> None:
    _write_in_thread(ctx, seconds)


@queue.job(max_attempts=MANY, backoff=SOON, key="account", ordered=True)
async def write_in_order(ctx: JobContext, token: str, account: str) -> None:
    """Write in the order of enqueueing, without a result."""
    with at_work(ctx):
        async with ctx.transaction() as conn:
            await _insert(conn, ctx)


async def _write(ctx: JobContext, seconds: float) -> None:
    with at_work(ctx) as ending:
        async with ctx.transaction() as conn:
            await _insert(conn, ctx)
            until = time.monotonic() + seconds
            while ctx.attempt == 1 and time.monotonic() < until and not conn.is_closed():
                await asyncio.sleep(0.05)
            await ctx.complete_in(conn, ending)


async def _insert(conn: Any, ctx: JobContext) -> None:
    await conn.execute(_ASYNCPG, ctx.id, os.getpid(), ctx.attempt)
    await ctx.progress(50, "written")
    await ctx.emit("written")


async def _write_apart(ctx: JobContext, seconds: float) -> Ending:
    with at_work(ctx) as ending:
        async with await psycopg.AsyncConnection.connect(os.environ["HOWDAH_DSN"]) as connection:
            await connection.execute(_PSYCOPG, [ctx.id, os.getpid(), ctx.attempt])
        await ctx.progress(50, "written")
        if ctx.attempt == 1:
            await asyncio.sleep(seconds)
        return ending


def _write_in_thread(ctx: JobContext, seconds: float) -> None:
    dsn = os.environ["HOWDAH_DSN"]
    with (
        at_work(ctx) as ending,
        psycopg.connect(dsn, connect_timeout=5, target_session_attrs="read-write") as connection,
    ):
        with _answered(connection):
            connection.execute(_PSYCOPG, [ctx.id, os.getpid(), ctx.attempt])
        ctx.progress(50, "written")
        until = time.monotonic() + seconds
        while ctx.attempt == 1 and time.monotonic() < until and not ctx.lost:
            time.sleep(0.05)
            with _answered(connection):
                connection.execute("select 1")
        with _answered(connection):
            ctx.complete_in(connection, ending)
            connection.commit()


@contextmanager
def _answered(connection: psycopg.Connection[Any]) -> Generator[None]:
    """Cut the connection if no answer comes: the driver would wait for ever."""

    def cut() -> None:
        with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connected:
            connected.shutdown(socket.SHUT_RDWR)

    descriptor = connection.fileno()

    timer = threading.Timer(CALL_TIMEOUT, cut)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
