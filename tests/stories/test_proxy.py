"""The proxy does what it says: the faults of the stories are real."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator

import psycopg
import pytest

from tests.stories.proxy import Proxy
from tests.stories.server import PgServer
from tests.support.aside import Aside

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
    """Connect through the proxy, as often as one likes."""
    made: list[psycopg.Connection] = []

    def one_more() -> psycopg.Connection:
        made.append(psycopg.connect(own_server.dsn(ports=proxy.ports), autocommit=True))
        return made[-1]

    yield one_more
    for connection in made:
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


def test_nobody_answers_on_a_half_open_connection(
    own_server: PgServer, proxy: Proxy, connect: Connect
) -> None:
    client = connect()
    proxy.half_open()
    asked = Aside(lambda: client.execute("select 1"))
    assert connect().execute("select 1").fetchone() == (1,)
    assert not asked.over, "it waits for an answer that never comes"
    proxy.cut()
    with pytest.raises(psycopg.OperationalError):
        asked.result()


def test_what_was_held_arrives_afterwards(
    own_server: PgServer, proxy: Proxy, connect: Connect
) -> None:
    client = connect()
    proxy.held = True
    asked = Aside(lambda: client.execute("insert into kept values (1)"))
    newcomer = Aside(connect)
    threading.Event().wait(0.2)  # as long as it takes to see that nothing happens
    assert not asked.over
    assert not newcomer.over
    assert rows(own_server) == 0
    proxy.held = False
    asked.result()
    newcomer.result()
    assert rows(own_server) == 1


def test_a_statement_can_be_waited_for(
    own_server: PgServer, proxy: Proxy, connect: Connect
) -> None:
    client = connect()
    waiting = Aside(lambda: proxy.wait_for("select 2", 20))
    while not waiting.over:
        client.execute("select 2")
        time.sleep(0.01)
    assert waiting.result() is not None
