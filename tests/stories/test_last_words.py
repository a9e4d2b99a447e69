"""A server ends a connection: first come its last words, a moment later the end.

Whatever is asked in that moment gets no answer, and not the error of a closed connection either.
The proxy makes the moment last.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from datetime import timedelta
from typing import Any

import pytest

from howdah import Queue
from howdah.store.listen import NEWS, Listener
from howdah.store.wakeup import Wakeup
from tests.stories.proxy import Proxy
from tests.stories.server import PgServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.xdist_group("stories")


@pytest.fixture
def proxy(own_server: PgServer) -> Generator[Proxy]:
    with Proxy(own_server.port) as opened:
        yield opened


@pytest.fixture
async def queue(own_server: PgServer, database: str, proxy: Proxy) -> AsyncGenerator[Queue]:
    dsn = own_server.dsn(database, proxy.ports)
    async with Queue(dsn, call_timeout=timedelta(seconds=10)) as opened:
        yield opened


async def hear_last_words(server: PgServer, database: str, proxy: Proxy) -> None:
    """Let the server end every connection, and the clients hear that it will."""
    proxy.keeping_ends = True
    ended = server.value(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        f" where datname = '{database}'"
    )
    await eventually(lambda: proxy.kept_ends == ended)
    proxy.keeping_ends = False
    await asyncio.sleep(0.05)  # in which the clients read


async def test_a_bell_that_says_its_last_is_hung_anew(
    own_server: PgServer, database: str, proxy: Proxy, queue: Queue
) -> None:
    bell = Wakeup(queue.store, poll=0.01, knows=lambda _: True, news=lambda _: None)
    await bell.start()
    try:
        await hear_last_words(own_server, database, proxy)
        assert await bell.wait() == [], "no lock could be taken: look for yourself"
        await eventually(lambda: bell.hears)
    finally:
        await bell.stop()


async def test_a_listener_that_cannot_even_begin_tries_again(
    own_server: PgServer,
    database: str,
    proxy: Proxy,
    queue: Queue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect = queue.store.connect_to_listen

    async def connect_at_a_bad_moment() -> Any:
        connection = await connect()
        if not proxy.kept_ends:
            await hear_last_words(own_server, database, proxy)
        return connection

    monkeypatch.setattr(queue.store, "connect_to_listen", connect_at_a_bad_moment)
    heard: list[str] = []
    listener = Listener(queue.store, [NEWS], lambda _, said: heard.append(said), lambda: None)
    await listener.start()
    try:
        await eventually(lambda: listener.hears)
        await queue.store.fetchval("select pg_notify($1, 'good news')", NEWS)
        await eventually(lambda: heard == ["good news"])
    finally:
        await listener.stop()
