"""Own transaction: the block of `ctx.transaction()`, and the completion at its end.

Its connection comes from a pool that only handlers use (completions.py). So a handler that keeps it
costs neither a claim nor an ending. The row of the job is locked at the end of the block and not at
its beginning: a long block makes nobody wait. If the lease is gone then, the block is rolled back.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn

from howdah.errors import BadInput
from howdah.job import Claim
from howdah.run.context import JobContext, refuse_if_lost
from howdah.store import completion
from howdah.store.caller_connection import Driver

if TYPE_CHECKING:
    from howdah.run.completions import Completion, Completions
    from howdah.store.completion import Pool
    from howdah.store.store import Connection

ROLLBACK_TIMEOUT = 5.0  # seconds; then the connection is closed, which also rolls back


def close_at_once(connection: Any) -> None:
    """Close a connection, which may be closed already: the server rolls its transaction back."""
    with suppress(Exception):
        connection.terminate()


class OwnTransaction:
    """A transaction on a connection of howdah's own: `async with`."""

    def __init__(
        self, completions: Completions, context: JobContext, claim: Claim, idle: float
    ) -> None:
        self._completions = completions
        self._context = context
        self._claim = claim
        self._idle = idle

    def __enter__(self) -> NoReturn:
        raise BadInput(
            "ctx.transaction() is for async handlers: write `async with`. A plain function opens a "
            "transaction of its own and calls ctx.complete_in(conn, result) as its last statement"
        )

    def __exit__(self, *_: object) -> None: ...

    async def __aenter__(self) -> Connection:
        completions = self._completions
        if asyncio.get_running_loop() is not completions.loop:
            raise BadInput(
                "ctx.transaction() works in the event loop of the worker, and this handler runs "
                "in a thread: make it `async def`, or open a transaction of your own and call "
                "ctx.complete_in(conn, result) as its last statement"
            )
        refuse_if_lost(self._context)
        self._known: Completion = completions.of(self._context, self._claim)
        if self._known.open:
            raise BadInput(
                "ctx.transaction() is open already in this handler: a block inside it is "
                "`async with conn.transaction():`"
            )
        self._known.open = True
        try:
            self._pool: Pool = await completions.pool()
            self._connection: Any = await self._pool.acquire()
            await self._begin()
        except BaseException:
            self._known.open = False
            raise
        return self._connection

    async def _begin(self) -> None:
        try:
            refuse_if_lost(self._context)  # it may have waited for the connection
            self._transaction = self._connection.transaction(isolation="read_committed")
            await self._transaction.start()
            await completion.begin(self._connection, self._known.job, self._idle)
        except BaseException:
            close_at_once(self._connection)
            await self._release()
            raise
        self._known.connection = self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        known = self._known
        try:
            if error is None:
                await self._complete(known)
            else:
                await self._roll_back(known)
        finally:
            known.open, known.connection = False, None
            await self._release()

    async def _complete(self, known: Completion) -> None:
        """Complete the job in the transaction, and commit."""
        completed_inside, known.asked = known.asked, True
        try:
            if not completed_inside:
                await self._completions.prepare(known)
            if await completion.complete(
                self._connection, Driver.ASYNCPG, known.job, None, again=completed_inside
            ):
                known.result = None  # complete_in was called in a savepoint that was rolled back
        except BaseException:
            await self._roll_back(known)
            raise
        try:
            await self._transaction.commit()
        except BaseException:  # it may be committed all the same: that is asked later
            close_at_once(self._connection)
            raise
        known.committed = True

    async def _roll_back(self, known: Completion) -> None:
        try:
            async with asyncio.timeout(ROLLBACK_TIMEOUT):
                await self._transaction.rollback()
        except Exception:
            close_at_once(self._connection)  # what became of it is asked later
        except BaseException:  # cancelled once more
            close_at_once(self._connection)
            raise
        else:
            known.asked = False
            known.result = None

    async def _release(self) -> None:
        with suppress(Exception):  # a broken connection is closed
            await self._pool.release(self._connection)
