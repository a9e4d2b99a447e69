"""Cost: what a workload cost besides time.

CPU is that of this process, client and worker together. WAL is what the server wrote meanwhile
for all its clients: on a shared database it is an upper bound. Statements are those that this
process sent.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

import msgspec

from howdah import Queue
from howdah.errors import HowdahError
from howdah.store.bench import wal_position


class Cost(msgspec.Struct, frozen=True):
    """The cost of one workload, for all its jobs."""

    seconds: float
    cpu_seconds: float
    statements: int
    wal_bytes: int | None  # None if the role may not read it


class Meter:
    """Measures what happens inside `async with`."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._wal: int | None = None
        self.cost: Cost = Cost(0.0, 0.0, 0, None)

    async def __aenter__(self) -> Self:
        self._wal = await self._wal_position()
        self._statements = self._queue.store.statements
        self._cpu, self._began = time.process_time(), time.perf_counter()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        seconds = time.perf_counter() - self._began
        cpu = time.process_time() - self._cpu
        statements = self._queue.store.statements - self._statements
        wal = await self._wal_position()
        written = None if wal is None or self._wal is None else wal - self._wal
        self.cost = Cost(seconds, cpu, statements, written)

    async def _wal_position(self) -> int | None:
        try:
            return await wal_position(self._queue.store)
        except HowdahError:
            return None
