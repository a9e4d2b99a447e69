"""Fixtures of all tests: a server, a database, a queue. And the check for leaked connections."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Generator

import pytest

from howdah import Queue
from tests.support.connection_leaks import ConnectionLeaks
from tests.support.database import Database
from tests.support.database_pool import DatabasePool
from tests.support.databases import Databases, server_for_tests

# A command that a shell starts in the background ignores SIGINT. So would every process that a test
# starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


connection_leaks = ConnectionLeaks()
connection_leaks.install()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Fail the test that leaked a connection, after its fixtures have closed theirs."""
    yield
    leaks = connection_leaks.found()
    if leaks and item.get_closest_marker("leaks_connections") is None:
        pytest.fail("\n".join(leaks), pytrace=False)


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Generator[Databases]:
    parallel = "PYTEST_XDIST_WORKER" in os.environ
    base = tmp_path_factory.getbasetemp()
    with server_for_tests((base.parent if parallel else base) / "pg") as server_dsn:
        made = Databases(server_dsn)
        try:
            yield made
        finally:
            made.drop_all()


@pytest.fixture
def dsn(databases: Databases) -> Generator[str]:
    """The DSN of a fresh database with the schema in it."""
    made = databases.create()
    yield made
    databases.drop(made)


@pytest.fixture
def empty_dsn(databases: Databases) -> Generator[str]:
    """The DSN of a fresh database without the schema."""
    made = databases.create_empty()
    yield made
    databases.drop(made)


@pytest.fixture
async def queue(dsn: str) -> AsyncGenerator[Queue]:
    """A queue on a fresh database."""
    async with Queue(dsn) as opened:
        yield opened


@pytest.fixture(scope="session")
def database_pool(databases: Databases) -> DatabasePool:
    return DatabasePool(databases)


@pytest.fixture
def db(database_pool: DatabasePool) -> Generator[Database]:
    """The engine as plain calls on a guarded database of its own."""
    made = database_pool.take()
    database = Database(made)
    yield database
    database.close()
    database_pool.give_back(made)


@pytest.fixture(scope="module")
def shared_db(databases: Databases) -> Generator[Database]:
    """One guarded database for a module of many small cases, each with jobs of its own."""
    made = databases.create_guarded()
    database = Database(made)
    yield database
    database.close()
    databases.drop(made)
