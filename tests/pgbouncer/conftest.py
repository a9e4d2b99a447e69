"""Fixtures: a separate server with a PgBouncer in front of it."""

from __future__ import annotations

import secrets
from collections.abc import Generator

import pytest

from howdah.client.sync import SyncQueue
from tests.pgbouncer.bouncer import Bouncer, find_pgbouncer, run_pgbouncer
from tests.support.postgres_server import running_server


@pytest.fixture(scope="session")
def bouncer(tmp_path_factory: pytest.TempPathFactory) -> Generator[Bouncer]:
    find_pgbouncer()
    with (
        running_server(tmp_path_factory.mktemp("pg")) as server,
        run_pgbouncer(server, tmp_path_factory.mktemp("bouncer")) as running_bouncer,
    ):
        yield running_bouncer


@pytest.fixture
def database(bouncer: Bouncer) -> Generator[str]:
    """The name of a fresh database with the schema in it, on the server behind PgBouncer."""
    name = f"pooled_{secrets.token_hex(4)}"
    bouncer.server.value(f"create database {name}")
    with SyncQueue(bouncer.direct(name)) as queue:
        queue.install()
    yield name
    bouncer.server.value(f"drop database {name} with (force)")
