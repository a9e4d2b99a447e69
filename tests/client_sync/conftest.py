"""A sync queue on a fresh database."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from howdah import SyncQueue


@pytest.fixture
def sync(dsn: str) -> Generator[SyncQueue]:
    with SyncQueue(dsn) as opened:
        yield opened
