"""What every test may ask for: a server, a fresh database, a queue on it."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, Generator

import pytest

from howdah import Queue
from tests.support.databases import Databases, server_for_tests


@pytest.fixture(scope="session")
def databases() -> Generator[Databases]:
    run_id = os.environ.get("PYTEST_XDIST_TESTRUNUID") or secrets.token_hex(8)
    with server_for_tests(run_id) as server_dsn:
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
