"""The server ends a connection: first it sends an error, a moment later it closes.

A command in that moment gets neither an answer nor the error of a closed connection. The proxy
makes the moment last.
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
from tests.support.postgres_server import PgServer
from tests.support.proxy import Proxy
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


async def end_connections(server: PgServer, database: str, proxy: Proxy) -> None:
    """Let the server end every connection; the clients get its error, but no close."""
    proxy.hiding_close = True
    ended = server.value(
        "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        f" where datname = '{database}'"
    )
    await eventually(lambda: proxy.hidden_closes == ended)
    proxy.hiding_close = False
    await asyncio.sleep(0.05)  # the clients read the error


async def test_a_wakeup_on_a_closing_connection_connects_again(
    own_server: PgServer, database: str, proxy: Proxy, queue: Queue
) -> None:
    wakeup = Wakeup(queue.store, poll=0.01, knows=lambda _: True, news=lambda _: None)
    await wakeup.start()
    try:
        await end_connections(own_server, database, proxy)
        assert await wakeup.wait() == [], "no lock could be taken, so the caller must claim"
        await eventually(lambda: wakeup.is_listening)
    finally:
        await wakeup.stop()


async def test_a_listener_whose_connection_closes_at_its_start_tries_again(
    own_server: PgServer,
    database: str,
    proxy: Proxy,
    queue: Queue,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect = queue.store.connect_to_listen

    async def connect_and_end() -> Any:
        connection = await connect()
        if not proxy.hidden_closes:
            await end_connections(own_server, database, proxy)
        return connection

    monkeypatch.setattr(queue.store, "connect_to_listen", connect_and_end)
    received: list[str] = []
    listener = Listener(
        queue.store, [NEWS], lambda _, payload: received.append(payload), lambda: None
    )
    await listener.start()
    try:
        await eventually(lambda: listener.is_listening)
        await queue.store.fetchval("select pg_notify($1, 'good news')", NEWS)
        await eventually(lambda: received == ["good news"])
    finally:
        await listener.stop()
