"""The proxy causes the faults that the stories need."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator

import psycopg
import pytest

from tests.support.background import BackgroundCall
from tests.support.postgres_server import PgServer
from tests.support.proxy import Proxy

pytestmark = pytest.mark.xdist_group("stories")


@pytest.fixture
def proxy(own_server: PgServer) -> Generator[Proxy]:
    own_server.value("drop table if exists kept")
    own_server.value("create table kept (n int)")
    with Proxy(own_server.port) as opened:
        yield opened


Connect = Callable[[], psycopg.Connection]


@pytest.fixture
def connect(own_server: PgServer, proxy: Proxy) -> Generator[Connect]:
    """A function that connects through the proxy."""
    connections: list[psycopg.Connection] = []

    def connect_again() -> psycopg.Connection:
        connections.append(psycopg.connect(own_server.dsn(ports=proxy.ports), autocommit=True))
        return connections[-1]

    yield connect_again
    for connection in connections:
        connection.close()


def rows(server: PgServer) -> int:
    return server.value("select count(*) from kept")


def test_a_statement_whose_answer_is_lost_was_carried_out(
    own_server: PgServer, proxy: Proxy, connect: Connect
) -> None:
    client = connect()
    client.execute("insert into kept values (1)")
    proxy.drop_answer("into kept")
    with pytest.raises(psycopg.OperationalError):
        client.execute("insert into kept values (2)")
    assert (proxy.dropped, proxy.dropping) == (1, False)
    assert rows(own_server) == 2


def test_the_answer_to_a_commit_can_be_lost(
    own_server: PgServer, proxy: Proxy, connect: Connect
) -> None:
    client = connect()
    proxy.drop_answer("(?i)^commit")
    with pytest.raises(psycopg.OperationalError), client.transaction():
        client.execute("insert into kept values (1)")
    assert rows(own_server) == 1


def test_connections_can_be_cut(own_server: PgServer, proxy: Proxy, connect: Connect) -> None:
    client = connect()
    assert proxy.cut() == 1
    with pytest.raises(psycopg.OperationalError):
        client.execute("select 1")
    assert connect().execute("select 1").fetchone() == (1,)


def test_a_half_open_connection_gets_no_answer(
    own_server: PgServer, proxy: Proxy, connect: Connect
) -> None:
    client = connect()
    proxy.half_open()
    call = BackgroundCall(lambda: client.execute("select 1"))
    assert connect().execute("select 1").fetchone() == (1,)
    assert not call.over, "there is no answer, so it waits"
    proxy.cut()
    with pytest.raises(psycopg.OperationalError):
        call.result()


def test_a_held_message_arrives_afterwards(
    own_server: PgServer, proxy: Proxy, connect: Connect
) -> None:
    client = connect()
    proxy.held = True
    call = BackgroundCall(lambda: client.execute("insert into kept values (1)"))
    new_connection = BackgroundCall(connect)
    threading.Event().wait(0.2)  # long enough for a message that is not held
    assert not call.over
    assert not new_connection.over
    assert rows(own_server) == 0
    proxy.held = False
    call.result()
    new_connection.result()
    assert rows(own_server) == 1


def test_a_statement_can_be_waited_for(
    own_server: PgServer, proxy: Proxy, connect: Connect
) -> None:
    client = connect()
    waiting = BackgroundCall(lambda: proxy.wait_for("select 2", 20))
    while not waiting.over:
        client.execute("select 2")
        time.sleep(0.01)
    assert waiting.result() is not None
