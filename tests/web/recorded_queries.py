"""Recorded queries: which statements a page sent to the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import pytest

from howdah.store import Store, query


class RecordedQueries:
    """Records every call of `query.fetch`, which all pages use."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[str] = []
        self.limits: set[timedelta] = set()
        fetch = query.fetch

        async def recorded(
            store: Store, within: timedelta, sql: str, *args: object
        ) -> Sequence[asyncpg.Record]:
            self.statements.append(sql)
            self.limits.add(within)
            return await fetch(store, within, sql, *args)

        monkeypatch.setattr(query, "fetch", recorded)

    def times(self, part: str) -> int:
        """Return how many statements contain this text."""
        return sum(part in statement for statement in self.statements)
