"""Store: connections to one database, opened late, checked once, given back.

A call on a store that is not open opens it, and the first call checks that the schema fits.
Every error passes through refusals.py. With
no DSN the store joins the embedded PostgreSQL and installs the schema there by itself; on a
database somebody else owns, installing is that somebody's decision.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from howdah.errors import Unreachable
from howdah.payload import MAX_BYTES
from howdah.store import install
from howdah.store.address import find_dsn, without_password
from howdah.store.refusals import from_postgres

if TYPE_CHECKING:
    from howdah.embedded import Server

    Connection = (
        asyncpg.pool.PoolConnectionProxy[asyncpg.Record] | asyncpg.Connection[asyncpg.Record]
    )


async def _leave_as_is(_: object) -> None:
    """Give a connection back without the usual reset: no call of ours leaves session state."""


class Store:
    """Connections to one database."""

    def __init__(
        self,
        dsn: str | None = None,
        *,
        listen_dsn: str | None = None,
        pgbouncer: bool = False,
        connections: int = 8,
        patience: float = 10.0,
    ) -> None:
        self.payload_limit: int = MAX_BYTES  # until the database has said what holds there
        self._given = find_dsn(dsn)
        self._listen_dsn = find_dsn(listen_dsn) if listen_dsn else None
        self._pgbouncer = pgbouncer
        self._connections = connections
        self._patience = patience
        self.statements: int = 0  # how many calls were made, for those who measure
        self._dsn = self._given
        self._checked = False  # whether the schema was found to fit
        self._server: Server | None = None
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Lock | None = None

    def another(self) -> Store:
        """Make a store of the same database, with connections of its own for another loop."""
        other = copy.copy(self)
        other._dsn, other._server = self._given, None
        other._pool = other._loop = other._opening = None
        return other

    @property
    def embedded(self) -> bool:
        return self._given is None

    @property
    def shown_dsn(self) -> str:
        """The address as it may be shown: without its password."""
        return without_password(self._dsn) if self._dsn else "the embedded PostgreSQL"

    @property
    def can_listen(self) -> bool:
        """Whether being told is possible: not through a pooler that swaps sessions."""
        return self._listen_dsn is not None or not self._pgbouncer

    async def open(self) -> None:
        """Open the store, unless it is open."""
        if self._pool is not None and self._loop is asyncio.get_running_loop():
            return
        if self._opening is None or self._loop is not asyncio.get_running_loop():
            self._opening, self._loop, self._pool = asyncio.Lock(), asyncio.get_running_loop(), None
        async with self._opening:
            if self._pool is not None:
                return
            await self._join_embedded()
            pool = asyncpg.create_pool(
                min_size=0,
                max_size=self._connections,
                connect=self.connect,
                reset=_leave_as_is,
                max_inactive_connection_lifetime=300,
            )
            await pool
            try:
                async with self._translated(), pool.acquire() as connection:
                    if self.embedded:
                        await install.install(connection)
            except BaseException:
                pool.terminate()
                await self._leave_embedded()
                raise
            self._pool = pool

    async def install(self) -> bool:
        """Make or upgrade the schema; returns whether anything had to be done."""
        await self._join_embedded()
        connection = await self.connect()
        try:
            async with self._translated():
                return await install.install(connection)
        finally:
            await connection.close()

    async def _join_embedded(self) -> None:
        if not self.embedded or self._server is not None:
            return
        from howdah.embedded import join

        self._server = await asyncio.to_thread(join)
        self._dsn = self._server.dsn

    async def _leave_embedded(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            await asyncio.to_thread(server.release)

    async def close(self) -> None:
        """Close every connection; the next call opens the store anew."""
        pool, self._pool = self._pool, None
        if pool is not None and self._loop is asyncio.get_running_loop():
            # a pool of another loop, which has ended, has lost its connections with it
            try:
                async with asyncio.timeout(2):
                    await pool.close()
            except (TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                pool.terminate()
        await self._leave_embedded()

    async def connect(self, *_: Any, **__: Any) -> asyncpg.Connection[asyncpg.Record]:
        """Open one connection outside the pool; its owner closes it."""
        return await self._connect(self._dsn)

    async def connect_to_listen(self) -> asyncpg.Connection[asyncpg.Record]:
        """Open one connection on which LISTEN works."""
        return await self._connect(self._listen_dsn or self._dsn)

    async def _connect(self, dsn: str | None) -> asyncpg.Connection[asyncpg.Record]:
        async with self._translated():
            try:
                return await asyncpg.connect(
                    dsn,
                    timeout=self._patience,
                    statement_cache_size=0 if self._pgbouncer else 200,
                    server_settings=None if self._pgbouncer else {"application_name": "howdah"},
                )
            except ValueError as error:  # asyncpg's word for a DSN it cannot read
                raise Unreachable(f"cannot use the DSN {self.shown_dsn}: {error}") from None

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[Connection]:
        """Lend a connection; errors inside are translated."""
        await self.open()
        assert self._pool is not None
        self.statements += 1
        async with self._translated(), self._pool.acquire() as connection:
            if not self._checked:
                await self._check(connection)
            if self._pgbouncer:  # a statement's parts must meet the same server
                async with connection.transaction():
                    yield connection
            else:
                yield connection

    async def _check(self, connection: Connection) -> None:
        """Refuse a schema that does not fit, and learn what holds in this database."""
        await install.check(connection)
        limit = await connection.fetchval("select howdah.option('max_payload_bytes')")
        self.payload_limit = int(limit)
        self._checked = True

    async def fetch(self, sql: str, *args: object) -> Sequence[asyncpg.Record]:
        async with self.acquire() as connection:
            return await connection.fetch(sql, *args)

    async def fetchval(self, sql: str, *args: object) -> Any:
        async with self.acquire() as connection:
            return await connection.fetchval(sql, *args)

    @asynccontextmanager
    async def _translated(self) -> AsyncGenerator[None]:
        try:
            yield
        except BaseException as error:
            translated = from_postgres(error, self.shown_dsn)
            if translated is None:
                raise
            if detail := getattr(error, "detail", None):
                translated.add_note(str(detail))
            raise translated from error
