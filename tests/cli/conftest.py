"""The command line on a fresh database, and a queue on the same database."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from howdah.client.sync import SyncQueue
from tests.cli.support import Cli


@pytest.fixture
def cli(dsn: str) -> Cli:
    """Commands run in this process, on a fresh database with the schema."""
    return Cli(dsn)


@pytest.fixture
def jobs(dsn: str) -> Generator[SyncQueue]:
    """A queue on the same database, for the test itself."""
    with SyncQueue(dsn) as queue:
        yield queue
