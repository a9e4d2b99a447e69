"""Transaction drivers: every driver in which a caller may hold a transaction open.

Each one opens a connection, begins a transaction as its users do, and yields what `conn=` takes,
with functions to commit, to roll back and to run a query.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg
import psycopg
import psycopg2
import sqlalchemy as sa
from psycopg.rows import dict_row
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as sa_asyncio

_psycopg: Any = psycopg  # untyped: the row and cursor factories change its types


@dataclass
class OpenTransaction:
    """An open transaction of sync code."""

    conn: Any
    commit: Callable[[], object]
    rollback: Callable[[], object]
    fetch_value: Callable[[str], Any]  # the first value of the first row


@dataclass
class OpenAsyncTransaction:
    """An open transaction of async code."""

    conn: Any
    commit: Callable[[], Awaitable[object]]
    rollback: Callable[[], Awaitable[object]]
    fetch_value: Callable[[str], Awaitable[Any]]


Driver = Callable[[str], AbstractContextManager[OpenTransaction]]
AsyncDriver = Callable[[str], AbstractAsyncContextManager[OpenAsyncTransaction]]


def url_for(dsn: str, driver: str) -> str:
    """Return the DSN as a SQLAlchemy URL for this driver."""
    return dsn.replace("postgresql://", f"postgresql+{driver}://", 1)


# ── sync ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def psycopg_connection(dsn: str) -> Generator[OpenTransaction]:
    # a caller may set its own row and cursor factories; enqueue must work with them
    with _psycopg.connect(dsn, row_factory=dict_row, cursor_factory=psycopg.RawCursor) as conn:

        def fetch_value(sql: str) -> Any:
            row: Any = conn.execute(sql.encode()).fetchone()
            return next(iter(row.values()))

        yield OpenTransaction(conn, conn.commit, conn.rollback, fetch_value)


@contextmanager
def psycopg2_connection(dsn: str) -> Generator[OpenTransaction]:
    conn: Any = psycopg2.connect(dsn)
    try:

        def fetch_value(sql: str) -> Any:
            with conn.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchone()[0]

        yield OpenTransaction(conn, conn.commit, conn.rollback, fetch_value)
    finally:
        conn.close()


def sqlalchemy_connection(driver: str) -> Driver:
    @contextmanager
    def driver_connection(dsn: str) -> Generator[OpenTransaction]:
        engine = sa.create_engine(url_for(dsn, driver), poolclass=sa.NullPool)
        with engine.connect() as conn:
            yield OpenTransaction(
                conn, conn.commit, conn.rollback, lambda sql: conn.scalar(sa.text(sql))
            )

    return driver_connection


def sqlalchemy_session(driver: str, *, scoped: bool = False) -> Driver:
    @contextmanager
    def driver_connection(dsn: str) -> Generator[OpenTransaction]:
        engine = sa.create_engine(url_for(dsn, driver), poolclass=sa.NullPool)
        make_session = orm.sessionmaker(engine)
        session: Any = orm.scoped_session(make_session) if scoped else make_session()
        try:
            yield OpenTransaction(
                session, session.commit, session.rollback, lambda sql: session.scalar(sa.text(sql))
            )
        finally:
            session.close()

    return driver_connection


def _django_database(dsn: str) -> dict[str, Any]:
    parts = urlsplit(dsn)
    host = parse_qs(parts.query).get("host", [parts.hostname or ""])[0]
    port = parse_qs(parts.query).get("port", [str(parts.port or "")])[0]
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "HOST": unquote(host),
        "PORT": port,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
    }


def _django() -> Any:
    """Set Django up once, without a database name yet. Django has no type stubs."""
    settings: Any = import_module("django.conf").settings
    if not settings.configured:
        unnamed = {a: {"ENGINE": "django.db.backends.postgresql"} for a in ("default", "other")}
        settings.configure(DATABASES=unnamed, USE_TZ=True)
        import_module("django").setup()
    return import_module("django.db")


def django_connection(alias: str) -> Driver:
    @contextmanager
    def driver_connection(dsn: str) -> Generator[OpenTransaction]:
        db = _django()
        wrapper = db.connections[alias]
        wrapper.settings_dict.update(_django_database(dsn))
        atomic = db.transaction.atomic(using=alias)
        conn = db.connection if alias == "default" else wrapper
        ended = False

        def end(error: type[BaseException] | None = None) -> None:
            nonlocal ended
            ended = True
            atomic.__exit__(error, error and error(), None)

        def fetch_value(sql: str) -> Any:
            with wrapper.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchone()[0]

        atomic.__enter__()
        try:
            yield OpenTransaction(conn, end, lambda: end(RuntimeError), fetch_value)
        finally:
            if not ended:
                end(RuntimeError)
            wrapper.close()

    return driver_connection


SYNC: dict[str, Driver] = {
    "psycopg": psycopg_connection,
    "psycopg2": psycopg2_connection,
    "sqlalchemy connection, psycopg": sqlalchemy_connection("psycopg"),
    "sqlalchemy connection, psycopg2": sqlalchemy_connection("psycopg2"),
    "sqlalchemy session, psycopg": sqlalchemy_session("psycopg"),
    "sqlalchemy session, psycopg2": sqlalchemy_session("psycopg2"),
    "sqlalchemy scoped session": sqlalchemy_session("psycopg", scoped=True),
    "django.db.connection": django_connection("default"),
    "django.db.connections[…]": django_connection("other"),
}


# ── async ─────────────────────────────────────────────────────────────────────────────────


@asynccontextmanager
async def psycopg_async_connection(dsn: str) -> AsyncGenerator[OpenAsyncTransaction]:
    async with await _psycopg.AsyncConnection.connect(dsn, row_factory=dict_row) as conn:

        async def fetch_value(sql: str) -> Any:
            row: Any = await (await conn.execute(sql.encode())).fetchone()
            return next(iter(row.values()))

        yield OpenAsyncTransaction(conn, conn.commit, conn.rollback, fetch_value)


@asynccontextmanager
async def asyncpg_connection(dsn: str) -> AsyncGenerator[OpenAsyncTransaction]:
    conn = await asyncpg.connect(dsn)
    # a caller may set its own jsonb codec; enqueue must work with it
    await conn.set_type_codec("jsonb", schema="pg_catalog", encoder=repr, decoder=repr)
    try:
        tx = conn.transaction()
        await tx.start()
        yield OpenAsyncTransaction(conn, tx.commit, tx.rollback, conn.fetchval)
    finally:
        await conn.close()


@asynccontextmanager
async def asyncpg_pool(dsn: str) -> AsyncGenerator[OpenAsyncTransaction]:
    async with asyncpg.create_pool(dsn, min_size=1) as pool, pool.acquire() as conn:
        tx = conn.transaction()
        await tx.start()
        yield OpenAsyncTransaction(conn, tx.commit, tx.rollback, conn.fetchval)


def sqlalchemy_async_connection(driver: str) -> AsyncDriver:
    @asynccontextmanager
    async def driver_connection(dsn: str) -> AsyncGenerator[OpenAsyncTransaction]:
        engine = sa_asyncio.create_async_engine(url_for(dsn, driver), poolclass=sa.NullPool)
        async with engine.connect() as conn:
            yield OpenAsyncTransaction(
                conn, conn.commit, conn.rollback, lambda sql: conn.scalar(sa.text(sql))
            )

    return driver_connection


def sqlalchemy_async_session(driver: str, *, scoped: bool = False) -> AsyncDriver:
    @asynccontextmanager
    async def driver_connection(dsn: str) -> AsyncGenerator[OpenAsyncTransaction]:
        engine = sa_asyncio.create_async_engine(url_for(dsn, driver), poolclass=sa.NullPool)
        make_session = sa_asyncio.async_sessionmaker(engine)
        session: Any = (
            sa_asyncio.async_scoped_session(make_session, asyncio.current_task)
            if scoped
            else make_session()
        )
        try:
            yield OpenAsyncTransaction(
                session, session.commit, session.rollback, lambda sql: session.scalar(sa.text(sql))
            )
        finally:
            await session.close()

    return driver_connection


def blocking(driver: Driver) -> AsyncDriver:
    """Use a sync connection in async code. This is allowed and blocks the event loop."""

    @asynccontextmanager
    async def blocking_connection(dsn: str) -> AsyncGenerator[OpenAsyncTransaction]:
        with driver(dsn) as transaction:

            async def commit() -> None:
                transaction.commit()

            async def rollback() -> None:
                transaction.rollback()

            async def fetch_value(sql: str) -> Any:
                return transaction.fetch_value(sql)

            yield OpenAsyncTransaction(transaction.conn, commit, rollback, fetch_value)

    return blocking_connection


ASYNC: dict[str, AsyncDriver] = {
    "psycopg async": psycopg_async_connection,
    "asyncpg connection": asyncpg_connection,
    "asyncpg connection of a pool": asyncpg_pool,
    "sqlalchemy async connection, psycopg": sqlalchemy_async_connection("psycopg"),
    "sqlalchemy async connection, asyncpg": sqlalchemy_async_connection("asyncpg"),
    "sqlalchemy async session, psycopg": sqlalchemy_async_session("psycopg"),
    "sqlalchemy async session, asyncpg": sqlalchemy_async_session("asyncpg"),
    "sqlalchemy async scoped session": sqlalchemy_async_session("asyncpg", scoped=True),
}
ASYNC_OR_BLOCKING: dict[str, AsyncDriver] = ASYNC | {
    f"{name}, from async code": blocking(driver)
    for name, driver in SYNC.items()
    if not name.startswith("django")  # Django itself refuses to be used on a loop's thread
}
