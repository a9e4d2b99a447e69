"""Asked: which questions a page put to the database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import asyncpg
import pytest

from howdah.store import Store, query


class Asked:
    """Listens at the one door through which every page asks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.statements: list[str] = []
        self.limits: set[timedelta] = set()
        fetch = query.fetch

        async def listened(
            store: Store, within: timedelta, sql: str, *args: object
        ) -> Sequence[asyncpg.Record]:
            self.statements.append(sql)
            self.limits.add(within)
            return await fetch(store, within, sql, *args)

        monkeypatch.setattr(query, "fetch", listened)

    def times(self, part: str) -> int:
        """Say how many statements had this in them."""
        return sum(part in statement for statement in self.statements)
