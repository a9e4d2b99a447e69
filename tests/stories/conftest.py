"""Fixtures of the stories: a server of their own, which they may crash."""

from __future__ import annotations

import secrets
from collections.abc import Generator

import pytest

from howdah.client.sync import SyncQueue
from tests.support.postgres_server import PgServer


@pytest.fixture(scope="session")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Generator[PgServer]:
    made = PgServer(tmp_path_factory.mktemp("server")).make().start()
    yield made
    made.crash()


@pytest.fixture
def database(own_server: PgServer) -> str:
    """The name of a new database there, with howdah installed."""
    name = f"story_{secrets.token_hex(4)}"
    own_server.value(f"create database {name}")
    SyncQueue(own_server.dsn(name)).install()
    return name
