"""Store: connections to one database, opened late, checked once, given back.

A call on a store that is not open opens it, and the first call checks that the schema fits. Every
error passes through refusals.py. With no DSN the store joins the embedded PostgreSQL and installs
the schema there; on a database somebody else owns, installing is that somebody's decision.

Every event loop has a pool of its own, closed with the loop; all together stay within a limit. A
forked child leaves alone what it inherited, because a fork shares its sockets.

Behind a pooler in transaction mode no two calls share a session: no statement is kept in one, and
listening asks for a direct `listen_dsn`. (A statement without a name needs no transaction there.)
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
from howdah.safe_logging import log_named
from howdah.store import install
from howdah.store.array_types import tell_arrays
from howdah.store.connection_limit import ConnectionLimit
from howdah.store.database_name import database_name
from howdah.store.dsn import each_host, find_dsn, find_listen_dsn
from howdah.store.dsn_redaction import without_password, without_pieces
from howdah.store.errors import from_postgres
from howdah.store.pool import Closed, Pool

if TYPE_CHECKING:
    from howdah.embedded import Server
    from howdah.tracing import Tracing

    Connection = asyncpg.Connection[asyncpg.Record]

CONNECTING = 10.0  # seconds to get through to a server, at most
KEPT_STATEMENTS = 200
MOST_CONNECTIONS = 1000
ALL_LOOPS = 2  # times `connections`: what the pools of all event loops may have together
# A session that we alone use has no statements under names that we have yet to give.
STATEMENT_OF_ANOTHER = (
    asyncpg.DuplicatePreparedStatementError,
    asyncpg.InvalidSQLStatementNameError,
)
NO_LISTEN_HINT = (
    "jobs are looked for four times a second: to be told of them at once, give a direct listen_dsn "
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
        pgbouncer: bool | None = None,  # None: find out
        connections: int = 8,
        call_timeout: float = 30.0,
    ) -> None:
        self.payload_limit: int = MAX_BYTES  # until the database has said what holds there
        self._given = find_dsn(dsn)
        self._listen_dsn = find_listen_dsn(dsn, listen_dsn)
        self._pgbouncer = False if self._given is None else pgbouncer
        self._connections = _check_connections(connections)
        self._call_timeout = call_timeout  # seconds; then the connection is closed
        self.tracing: Tracing | None = None  # who makes spans of what is done here
        self.statements: int = 0  # how many calls were made, for those who measure
        self._dsn = self._given
        self._checked = False  # whether the schema was found to fit
        self._server: Server | None = None
        self._begin()

    def _begin(self) -> None:
        """Begin without any connection."""
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self._limit = ConnectionLimit(ALL_LOOPS * self._connections)
        self._opening: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = (
            WeakKeyDictionary()
        )
        self._joining = threading.Lock()  # held while the embedded PostgreSQL is joined or left
        _stores.add(self)

    def for_other_loop(self) -> Store:
        """Make a store of the same database, with connections of its own."""
        other = copy.copy(self)
        other._dsn, other._server = self._given, None
        other._begin()
        return other

    def renew(self) -> None:
        """Begin anew in a forked child, and leave the inherited connections alone."""
        _inherited.append(self._pools)
        self._begin()

    @property
    def embedded(self) -> bool:
        return self._given is None

    @property
    def shown_dsn(self) -> str:
        """The address as it may be shown: without its password."""
        return without_password(self._dsn) if self._dsn else "the embedded PostgreSQL"

    @property
    def dsn(self) -> str | None:
        """The address with its password, once the store is open: never to be shown."""
        return self._dsn

    @property
    def database_name(self) -> str:
        """Which database this is, for people: without user and password."""
        return database_name(self._given)

    @property
    def pooled(self) -> bool:
        """Whether a pooler stands before the server, which may swap sessions."""
        return self._pgbouncer is True

    @property
    def can_listen(self) -> bool:
        """Whether being told is possible: not through a pooler that swaps sessions."""
        return self._listen_dsn is not None or not self.pooled

    @property
    def shown_listen_dsn(self) -> str | None:
        """Where messages are heard, if not at the same address: without its password."""
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
                if self.embedded:
                    await self.install()
            except BaseException:
                await self._leave_embedded()
                raise
            pool = Pool(
                self.connect, self._connections, self._limit, self._call_timeout, self._spare_idle
            )
            await pool.end_with_loop(self._loop_ended)
            self._pools[loop] = pool

    def _loop_ended(self, pool: Pool) -> None:
        for loop, own in list(self._pools.items()):
            if own is pool:
                del self._pools[loop]

    def _abandon_closed_loops(self) -> None:
        """Let go of what a loop left open that was closed without ending its generators."""
        for loop, pool in list(self._pools.items()):
            if loop.is_closed():
                pool.abandon()
                self._pools.pop(loop, None)

    def _spare_idle(self) -> None:
        """Ask the pools of all loops to close a connection that nobody uses."""
        self._abandon_closed_loops()
        for loop, pool in list(self._pools.items()):
            with suppress(RuntimeError):  # closed in the meantime
                loop.call_soon_threadsafe(pool.spare_one)

    async def install(self) -> bool:
        """Make or upgrade the schema; returns whether anything had to be done."""
        await self._join_embedded()
        # a migration takes its time, and needs no statement twice
        connection = await self._connect(self._dsn, call_timeout=None, statements=0)
        try:
            return await install.install(connection)
        except BaseException as error:
            self.refuse(error)
        finally:
            await connection.close()

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
        """Let the embedded PostgreSQL go, unless another loop still uses it."""
        if self._server is not None and not self._pools:
            await asyncio.to_thread(self._leave_embedded_once)

    def _leave_embedded_once(self) -> None:
        with self._joining:
            server, self._server = self._server, None
            if server is not None:
                server.release()

    async def close(self) -> None:
        """Close every connection of the running event loop; the next call opens the store anew."""
        self._abandon_closed_loops()
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()
        await self._leave_embedded()

    async def connect(self) -> Connection:
        """Open one connection outside the pool; its owner closes it."""
        return await self._connect(self._dsn, self._call_timeout)

    async def connect_to_listen(self) -> Connection:
        """Open one connection on which LISTEN works; refuses one that a pooler answers."""
        connection = await self._connect(self._listen_dsn or self._dsn, self._call_timeout)
        try:
            if self._pgbouncer is not False and await _is_pooled(connection):
                if self._listen_dsn is None:
                    await self._mark_pooled()
                shown = self.shown_listen_dsn or self.shown_dsn
                raise HowdahError(f"no messages come from {shown}: a pooler answers there")
        except BaseException as error:
            connection.terminate()
            self.refuse(error)
        return connection

    async def _mark_pooled(self) -> None:
        """Begin anew with connections that keep nothing in a session."""
        if self.pooled:
            return
        self._pgbouncer = True
        _log.warning(
            "store.pooled a pooler such as PgBouncer answers at %s: nothing is kept in a session%s",
            self.shown_dsn,
            "" if self.can_listen else f", and {NO_LISTEN_HINT}",
        )
        here = asyncio.get_running_loop()
        for loop, pool in list(self._pools.items()):
            self._pools.pop(loop, None)
            if loop is here:
                await pool.close()
            else:
                with suppress(RuntimeError):  # closed in the meantime
                    asyncio.run_coroutine_threadsafe(pool.close(), loop)

    async def _connect(
        self, dsn: str | None, call_timeout: float | None, statements: int = KEPT_STATEMENTS
    ) -> Connection:
        """Connect to the first host that takes writes; each of several gets its share of time."""
        try:
            hosts = [dsn] if dsn is None else each_host(dsn)
        except ValueError as error:
            raise self._unreadable(error, dsn) from None
        for n, host in enumerate(hosts, 1):
            try:
                connection = await asyncpg.connect(
                    host,
                    timeout=min(CONNECTING, self._call_timeout) / len(hosts),
                    command_timeout=call_timeout,
                    statement_cache_size=0 if self.pooled else statements,
                    server_settings=None if self.pooled else {"application_name": "howdah"},
                )
                tell_arrays(connection)
                return connection
            except ValueError as error:  # asyncpg's word for a DSN it cannot read
                raise self._unreadable(error, dsn) from None
            except Exception as error:
                if n == len(hosts):
                    self.refuse(error)
        raise AssertionError("a DSN names a host")

    def _unreadable(self, error: ValueError, dsn: str | None) -> Unreachable:
        """Say what is wrong with a DSN, and nothing of its password."""
        shown = without_password(dsn or "")
        return Unreachable(f"cannot use the DSN {shown}: {without_pieces(str(error), dsn or '')}")

    def acquire(self) -> PooledConnection:
        """Lend a connection; errors inside are translated."""
        return PooledConnection(self)

    async def fetch(self, sql: str, *args: object) -> Sequence[asyncpg.Record]:
        async with PooledConnection(self) as connection:
            return await connection.fetch(sql, *args)

    async def fetchval(self, sql: str, *args: object) -> Any:
        async with PooledConnection(self) as connection:
            return await connection.fetchval(sql, *args)

    async def _take(self) -> tuple[Pool, Connection]:
        self.statements += 1
        while True:
            loop = asyncio.get_running_loop()
            pool = self._pools.get(loop)
            if pool is None:
                await self.open()
                continue
            try:
                connection = await pool.take()
            except Closed:
                continue
            if not self._checked:
                try:
                    await self._check(connection)
                except BaseException as error:
                    pool.give(connection)
                    self.refuse(error)
            if pool is self._pools.get(loop):
                return pool, connection
            pool.give(connection)  # of a pool made before we knew who answers

    async def _check(self, connection: Connection) -> None:
        """Refuse a schema that does not fit, and learn what holds in this database."""
        try:
            async with connection.transaction():
                await install.check(connection)
                learned = await connection.fetchrow(
                    "select howdah.option('max_payload_bytes')::int, pg_backend_pid()"
                )
        except STATEMENT_OF_ANOTHER:
            if self._pgbouncer is not None:
                raise
            await self._mark_pooled()
            return
        assert learned is not None
        if self._pgbouncer is None:
            if learned[1] != connection.get_server_pid():
                await self._mark_pooled()
                return
            self._pgbouncer = False
        self.payload_limit = learned[0]
        self._checked = True

    def refuse(self, error: BaseException) -> NoReturn:
        """Raise the error in howdah's own words, or as it is where it is not ours to change."""
        found = from_postgres(error, self.shown_dsn)
        if found is None:
            raise error
        if detail := getattr(error, "detail", None):
            found.add_note(str(detail))
        raise found from error


_stores: WeakSet[Store] = WeakSet()
_inherited: list[object] = []  # kept: to close them would close the parent's connections


def _after_fork() -> None:
    for store in list(_stores):
        store.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _check_connections(connections: int) -> int:
    whole = isinstance(connections, int) and not isinstance(connections, bool)  # pyright: ignore
    if not whole or not 1 <= connections <= MOST_CONNECTIONS:
        raise BadInput(
            f"connections is a whole number from 1 to {MOST_CONNECTIONS}, not {connections!r}"
        )
    return connections


class PooledConnection:
    """A connection of the pool for the time of one call."""

    __slots__ = ("_connection", "_pool", "_store")

    def __init__(self, store: Store) -> None:
        self._store = store

    async def __aenter__(self) -> Connection:
        self._pool, self._connection = await self._store._take()  # pyright: ignore[reportPrivateUsage]
        return self._connection

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and _spoils(error):
            self._connection.terminate()
        self._pool.give(self._connection)
        if error is not None:
            self._store.refuse(error)


async def _is_pooled(connection: Connection) -> bool:
    """Whether somebody else than the server let us in: its process has another number."""
    try:
        async with connection.transaction():
            server = await connection.fetchval("select pg_backend_pid()")
    except STATEMENT_OF_ANOTHER:
        return True
    return server != connection.get_server_pid()


def _spoils(error: BaseException) -> bool:
    """Whether a connection is of no use after this: no answer came, or its server is a standby."""
    lost = (TimeoutError, asyncio.CancelledError, asyncpg.ReadOnlySQLTransactionError)
    return isinstance(error, lost)


async def fetch_ids(store: Store, sql: str, *args: object) -> set[UUID]:
    """Return the ids that a statement answers with."""
    return {row[0] for row in await store.fetch(sql, *args)}
