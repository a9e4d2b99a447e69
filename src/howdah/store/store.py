"""Store: the connections to one database.

A call on a store that is not open opens it, and the first call checks that the schema fits. Every
error passes through errors.py. Without a DSN the store starts or joins the embedded PostgreSQL and
installs the schema there. On any other database, the user installs it.

Every event loop has a pool of its own, which is closed with the loop. All pools share one limit. A
forked child does not touch the connections of its parent, because both share the sockets.

Behind a pooler in transaction mode two calls may get two sessions. Then no prepared statement is
cached, and listening needs a direct `listen_dsn`.
"""

from __future__ import annotations

import asyncio
import copy
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID
from weakref import WeakKeyDictionary, WeakSet

import asyncpg

from howdah.errors import BadInput, HowdahError, Unreachable
from howdah.payload import MAX_BYTES
from howdah.reachable import Reachable
from howdah.safe_logging import log_named
from howdah.store import install
from howdah.store.array_codecs import register_array_codecs
from howdah.store.array_types import register_array_types
from howdah.store.connection_limit import ConnectionLimit
from howdah.store.database_name import database_name
from howdah.store.dsn import each_host, find_dsn, find_listen_dsn
from howdah.store.dsn_redaction import redacted_message, without_password
from howdah.store.errors import from_postgres
from howdah.store.pool import Pool, PoolClosed

if TYPE_CHECKING:
    from howdah.embedded import Server
    from howdah.tracing import Tracing

    Connection = asyncpg.Connection[asyncpg.Record]

DRIVER = asyncpg.__name__
CONNECT_TIMEOUT = 10.0  # seconds
CACHED_STATEMENTS = 200  # prepared statements per connection
MOST_CONNECTIONS = 1000
ALL_LOOPS = 2  # times `connections`: the limit for the pools of all event loops together
# These errors mean that another client shares our server session: a transaction pooler.
SHARED_SESSION_ERRORS = (
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.InvalidSQLStatementNameError,
)
NO_LISTEN_HINT = (
    "workers poll four times a second: to hear of new jobs at once, give a direct listen_dsn "
    "(HOWDAH_LISTEN_DSN)"
)

_log = log_named("howdah.store")


class Store:
    """Connections to one database."""

    def __init__(
        self,
        dsn: str | None = None,
        *,
        listen_dsn: str | None = None,
        pgbouncer: bool | None = None,  # None: detect it
        connections: int = 8,
        call_timeout: float = 30.0,
    ) -> None:
        self.payload_limit: int = MAX_BYTES  # until the option of this database is read
        self._given = find_dsn(dsn)
        self._listen_dsn = find_listen_dsn(dsn, listen_dsn)
        self._pgbouncer = False if self._given is None else pgbouncer
        self._connections = _check_connections(connections)
        self._call_timeout = call_timeout  # seconds; then the connection is closed
        self.tracing: Tracing | None = None  # makes spans of enqueues and attempts
        self.statements: int = 0  # how many calls were made, for benchmarks
        self._dsn = self._given
        self._checked = False  # whether the schema fits
        self._server: Server | None = None
        self._reset()

    def _reset(self) -> None:
        """Start without any connection."""
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._limit = ConnectionLimit(ALL_LOOPS * self._connections)
        self._installed = False  # whether the embedded database has the schema
        self._opening: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )
        self._joining = threading.Lock()  # held while the embedded PostgreSQL is joined or left
        self.reachable: Reachable = Reachable()
        _stores.add(self)

    def for_other_loop(self) -> Store:
        """Make a store of the same database, with connections of its own."""
        other = copy.copy(self)
        other._dsn, other._server = self._given, None
        other._reset()
        return other

    def reset_after_fork(self) -> None:
        """Start anew in a forked child, without touching the inherited connections."""
        _inherited.append(self._pools)
        self._reset()

    @property
    def embedded(self) -> bool:
        return self._given is None

    @property
    def shown_dsn(self) -> str:
        """The DSN without its password."""
        return without_password(self._dsn) if self._dsn else "the embedded PostgreSQL"

    @property
    def dsn(self) -> str | None:
        """The DSN with its password, once the store is open; never show or log it."""
        return self._dsn

    @property
    def database_name(self) -> str:
        """Name and host of the database, for people."""
        return database_name(self._given)

    @property
    def connections(self) -> int:
        """How many connections the pool of an event loop may have."""
        return self._connections

    @property
    def pooled(self) -> bool:
        """Whether a pooler may give each call another session."""
        return self._pgbouncer is True

    @property
    def can_listen(self) -> bool:
        """Whether LISTEN works: not through such a pooler."""
        return self._listen_dsn is not None or not self.pooled

    @property
    def shown_listen_dsn(self) -> str | None:
        """The DSN to listen at, if it is another one, without its password."""
        return without_password(self._listen_dsn) if self._listen_dsn else None

    async def open(self) -> None:
        """Open the store in the running event loop, unless it is open there."""
        loop = asyncio.get_running_loop()
        if loop in self._pools:
            return
        self._abandon_closed_loops()
        async with self._opening.setdefault(loop, asyncio.Lock()):
            if loop in self._pools:
                return
            await self._join_embedded()
            try:
                await self._install_embedded()
            except BaseException:
                await self._leave_embedded()
                raise
            pool = Pool(
                self.connect,
                self._connections,
                self._limit,
                self._call_timeout,
                self._close_one_idle,
            )
            await pool.close_with_loop(self._forget_pool)
            self._pools[loop] = pool

    def _forget_pool(self, closed: Pool) -> None:
        for loop, pool in list(self._pools.items()):
            if pool is closed:
                del self._pools[loop]

    def _abandon_closed_loops(self) -> None:
        """Drop the pools of loops that were closed without ending their async generators."""
        for loop, pool in list(self._pools.items()):
            if loop.is_closed():
                pool.abandon()
                self._pools.pop(loop, None)

    def _close_one_idle(self) -> None:
        """Ask the pools of all loops to close one idle connection."""
        self._abandon_closed_loops()
        for loop, pool in list(self._pools.items()):
            with suppress(RuntimeError):  # closed in the meantime
                loop.call_soon_threadsafe(pool.close_one_idle)

    async def install(self) -> bool:
        """Install or upgrade the schema; returns whether anything was changed."""
        await self._join_embedded()
        # no timeout: a migration may take long. No cache: no statement runs twice.
        connection = await self._connect(self._dsn, call_timeout=None, statements=0)
        try:
            return await install.install(connection)
        except BaseException as error:
            self.raise_translated(error)
        finally:
            await connection.close()

    async def _install_embedded(self) -> None:
        """Install the schema in the embedded database, once for all loops."""
        if not self.embedded or self._installed:
            return
        await self._limit.acquire(self._call_timeout, self._close_one_idle)
        try:
            if not self._installed:  # by another loop, meanwhile
                await self.install()
                self._installed = True
        finally:
            self._limit.release()

    async def _join_embedded(self) -> None:
        if not self.embedded or self._server is not None:
            return
        await asyncio.to_thread(self._join_embedded_once)

    def _join_embedded_once(self) -> None:
        from howdah.embedded import join

        with self._joining:
            if self._server is None:
                server = join()
                self._dsn, self._server = server.dsn, server

    async def _leave_embedded(self) -> None:
        """Release the embedded PostgreSQL, unless another loop still uses it."""
        if self._server is not None and not self._pools:
            await asyncio.to_thread(self._leave_embedded_once)

    def _leave_embedded_once(self) -> None:
        with self._joining:
            server, self._server, self._installed = self._server, None, False
            if server is not None:
                server.release()

    async def close(self) -> None:
        """Close every connection of the running event loop; the next call opens the store again."""
        self._abandon_closed_loops()
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()
        await self._leave_embedded()

    async def connect(self) -> Connection:
        """Open one connection outside the pool; the caller closes it."""
        return await self._connect(self._dsn, self._call_timeout)

    async def connect_plainly(self, **options: Any) -> Connection:
        """Open one connection for code that is not howdah's, as asyncpg makes them."""
        return await self._connect(self._dsn, self._call_timeout, codecs=False, **options)

    async def connect_to_listen(self) -> Connection:
        """Open one connection on which LISTEN works; refuses a pooler."""
        connection = await self._connect(self._listen_dsn or self._dsn, self._call_timeout)
        try:
            if self._pgbouncer is not False and await _is_pooled(connection):
                if self._listen_dsn is None:
                    await self._mark_pooled()
                shown = self.shown_listen_dsn or self.shown_dsn
                raise HowdahError(
                    f"LISTEN does not work at {shown}, because a pooler answers there: "
                    "give the address of the server itself as listen_dsn"
                )
        except BaseException as error:
            connection.terminate()
            self.raise_translated(error)
        return connection

    async def _mark_pooled(self) -> None:
        """Note that a pooler answers, and open new connections that cache no statements."""
        if self.pooled:
            return
        self._pgbouncer = True
        _log.warning(
            "store.pooled a pooler such as PgBouncer answers at %s: prepared statements are off%s",
            self.shown_dsn,
            "" if self.can_listen else f", and {NO_LISTEN_HINT}",
        )
        own_loop = asyncio.get_running_loop()
        for loop, pool in list(self._pools.items()):
            self._pools.pop(loop, None)
            if loop is own_loop:
                await pool.close()
            else:
                with suppress(RuntimeError):  # closed in the meantime
                    asyncio.run_coroutine_threadsafe(pool.close(), loop)

    async def _connect(
        self,
        dsn: str | None,
        call_timeout: float | None,
        statements: int = CACHED_STATEMENTS,
        *,
        codecs: bool = True,
        **options: Any,
    ) -> Connection:
        """Connect to the first host that takes writes; all hosts share the timeout."""
        try:
            hosts = [dsn] if dsn is None else each_host(dsn)
        except ValueError as error:
            raise self._bad_dsn(error, dsn) from None
        for n, host in enumerate(hosts, 1):
            try:
                connection = await asyncpg.connect(
                    host,
                    timeout=min(CONNECT_TIMEOUT, self._call_timeout) / len(hosts),
                    command_timeout=call_timeout,
                    statement_cache_size=0 if self.pooled else statements,
                    server_settings=None if self.pooled else {"application_name": "howdah"},
                    **options,
                )
                if codecs:
                    register_array_codecs(connection)  # first: asyncpg then forgets other arrays
                    register_array_types(connection)
                return connection
            except ValueError as error:  # asyncpg cannot parse the DSN
                raise self._bad_dsn(error, dsn) from None
            except Exception as error:
                if n == len(hosts):
                    self.raise_translated(error)
        raise AssertionError("a DSN has at least one host")

    def _bad_dsn(self, error: ValueError, dsn: str | None) -> Unreachable:
        """Say what is wrong with a DSN, without any part of its password."""
        shown = without_password(dsn or "")
        return Unreachable(f"cannot use the DSN {shown}: {redacted_message(str(error), dsn or '')}")

    def acquire(self) -> PooledConnection:
        """Use a connection of the pool: `async with`; errors inside are translated."""
        return PooledConnection(self)

    async def fetch(self, sql: str, *args: object) -> Sequence[asyncpg.Record]:
        async with PooledConnection(self) as connection:
            return await connection.fetch(sql, *args)

    async def fetchval(self, sql: str, *args: object) -> Any:
        async with PooledConnection(self) as connection:
            return await connection.fetchval(sql, *args)

    async def _acquire(self) -> tuple[Pool, Connection]:
        self.statements += 1
        while True:
            loop = asyncio.get_running_loop()
            pool = self._pools.get(loop)
            if pool is None:
                await self.open()
                continue
            try:
                connection = await pool.acquire()
            except PoolClosed:
                continue
            if not self._checked:
                try:
                    await self._check(connection)
                except BaseException as error:
                    pool.release(connection)
                    self.raise_translated(error)
            if pool is self._pools.get(loop):
                return pool, connection
            pool.release(connection)  # this pool was replaced when the pooler was detected

    async def _check(self, connection: Connection) -> None:
        """Refuse a schema that does not fit, read the payload limit, and detect a pooler."""
        try:
            async with connection.transaction():
                await install.check(connection)
                row = await connection.fetchrow(
                    "select howdah.option('max_payload_bytes')::int, pg_backend_pid()"
                )
        except SHARED_SESSION_ERRORS:
            if self._pgbouncer is not None:
                raise
            await self._mark_pooled()
            return
        assert row is not None
        payload_limit, server_pid = row
        if self._pgbouncer is None:
            if server_pid != connection.get_server_pid():
                await self._mark_pooled()
                return
            self._pgbouncer = False
        self.payload_limit = payload_limit
        self._checked = True

    def raise_translated(self, error: BaseException) -> NoReturn:
        """Raise an error as one of howdah's, or as it is if it has no translation."""
        translated = from_postgres(error, self.shown_dsn)
        if translated is None:
            raise error
        if detail := getattr(error, "detail", None):
            translated.add_note(str(detail))
        raise translated from error


_stores: WeakSet[Store] = WeakSet()
_inherited: list[object] = []  # never freed: that would close the parent's connections


def _after_fork() -> None:
    for store in list(_stores):
        store.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _check_connections(connections: int) -> int:
    is_whole_number = isinstance(connections, int) and not isinstance(connections, bool)  # pyright: ignore
    if not is_whole_number or not 1 <= connections <= MOST_CONNECTIONS:
        raise BadInput(
            f"connections must be a whole number from 1 to {MOST_CONNECTIONS}, not {connections!r}"
        )
    return connections


class PooledConnection:
    """A connection of the pool for one call."""

    __slots__ = ("_connection", "_pool", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __aenter__(self) -> Connection:
        self._pool, self._connection = await self._store._acquire()  # pyright: ignore[reportPrivateUsage]
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and _is_unusable_after(error):
            self._connection.terminate()
        self._pool.release(self._connection)
        if error is not None:
            self._store.raise_translated(error)


async def _is_pooled(connection: Connection) -> bool:
    """Whether a pooler answers: then the pid of the login differs from the server's."""
    try:
        async with connection.transaction():
            server_pid = await connection.fetchval("select pg_backend_pid()")
    except SHARED_SESSION_ERRORS:
        return True
    return server_pid != connection.get_server_pid()


def _is_unusable_after(error: BaseException) -> bool:
    """Whether to close the connection: no answer came, or its server is a standby."""
    closing = (TimeoutError, asyncio.CancelledError, asyncpg.ReadOnlySQLTransactionError)
    return isinstance(error, closing)


async def fetch_ids(store: Store, sql: str, *args: object) -> set[UUID]:
    """Return the ids in the first column."""
    return {row[0] for row in await store.fetch(sql, *args)}
