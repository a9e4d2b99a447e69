"""A database for all examples of a module: one for each would take longer than the examples."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from tests.support.databases import Databases


@pytest.fixture(scope="module")
def shared_dsn(databases: Databases) -> Generator[str]:
    """An address that every example of the module is tried on."""
    made = databases.create()
    yield made
    databases.drop(made)
