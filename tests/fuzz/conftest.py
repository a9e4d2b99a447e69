"""One database for all examples of a module: a new one for each would take too long."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.support.databases import Databases


@pytest.fixture(scope="module")
def shared_dsn(databases: Databases) -> Generator[str]:
    """The DSN of a database that all examples of the module share."""
    dsn = databases.create()
    yield dsn
    databases.drop(dsn)
