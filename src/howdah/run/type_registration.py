"""Registered: a worker tells the database what it knows of its job types.

In SQL  sql/50_run/register_job_types.sql, touch_job_types.sql

All types are written in one statement when the worker starts. After that, once a minute, it only
says that it still knows them. What fails here is tried again later: jobs matter more.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping
from datetime import timedelta

import msgspec

from howdah.errors import HowdahError
from howdah.handler import Handler
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.version import VERSION

_log = log_named("howdah.types")

EVERY = 60.0  # seconds between two times that a worker says it knows its types
AGAIN = 5.0  # seconds until what failed is tried again
_LONGEST = timedelta(days=36_500)  # PostgreSQL cannot count the seconds of every timedelta


class TypeRegistration:
    """The job types of one worker; `run` keeps them fresh for as long as the worker lives."""

    def __init__(self, store: Store, worker_id: str, handlers: Mapping[str, Handler]) -> None:
        self._store = store
        self._worker_id = worker_id
        self._handlers = handlers
        self._untold: set[str] = set(handlers)

    async def step(self) -> bool:
        """Register the types that are not, or say that we still know them; False: try again."""
        try:
            if not self._untold:
                self._untold = await self._seen()
            if self._untold:
                await self._register(self._untold)
                self._untold = set()
        except HowdahError as error:
            _log.warning("types.unregistered id=%s error=%s", self._worker_id, error)
            return False
        return True

    async def run(self) -> None:
        wait = AGAIN if self._untold else EVERY
        while True:
            await asyncio.sleep(wait * random.uniform(0.8, 1.2))  # noqa: S311
            wait = EVERY if await self.step() else min(wait * 2, EVERY)

    async def _register(self, names: Iterable[str]) -> None:
        rows = [_row(self._handlers[name]) for name in sorted(names)]
        await self._store.fetchval(
            "select howdah.register_job_types($1, $2, $3) from howdah.async_commit()",
            self._worker_id,
            msgspec.json.encode(rows).decode(),
            VERSION,
        )

    async def _seen(self) -> set[str]:
        rows = await self._store.fetch(
            "select t.* from howdah.async_commit(), howdah.touch_job_types($1) as t",
            list(self._handlers),
        )
        return {row[0] for row in rows}


def _row(handler: Handler) -> dict[str, object]:
    """Describe one type with the names of the columns of howdah.job_types."""
    rules = handler.rules
    timeout = rules.timeout
    return {
        "name": handler.job_type,
        "priority": rules.priority,
        "max_attempts": rules.max_attempts,
        "timeout": None if timeout is None else f"{min(timeout, _LONGEST).total_seconds():f} s",
        "run": handler.run,
        "parameters": handler.parameters,
        "signature": handler.signature,
        "label": rules.label,
    }
