"""Every way a caller may have of holding a transaction open, and how each ends it.

A way opens a connection to a database, begins a transaction as its own users would, and hands
out what `conn=` is given, with the two ends of the transaction and a plain query in it.
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

_psycopg: Any = psycopg  # its row and cursor factories change what a connection is


@dataclass
class Open:
    """An open transaction of sync code."""

    conn: Any
    commit: Callable[[], object]
    rollback: Callable[[], object]
    ask: Callable[[str], Any]  # the first value of a query's answer


@dataclass
class OpenAsync:
    """An open transaction of async code."""

    conn: Any
    commit: Callable[[], Awaitable[object]]
    rollback: Callable[[], Awaitable[object]]
    ask: Callable[[str], Awaitable[Any]]


Way = Callable[[str], AbstractContextManager[Open]]
AsyncWay = Callable[[str], AbstractAsyncContextManager[OpenAsync]]


def url_for(dsn: str, driver: str) -> str:
    """Name the driver in a DSN, as SQLAlchemy wants it."""
    return dsn.replace("postgresql://", f"postgresql+{driver}://", 1)


# ── sync ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def psycopg_connection(dsn: str) -> Generator[Open]:
    # rows and cursors as a caller may want them; ours must not notice
    with _psycopg.connect(dsn, row_factory=dict_row, cursor_factory=psycopg.RawCursor) as conn:

        def ask(sql: str) -> Any:
            row: Any = conn.execute(sql.encode()).fetchone()
            return next(iter(row.values()))

        yield Open(conn, conn.commit, conn.rollback, ask)


@contextmanager
def psycopg2_connection(dsn: str) -> Generator[Open]:
    conn: Any = psycopg2.connect(dsn)
    try:

        def ask(sql: str) -> Any:
            with conn.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchone()[0]

        yield Open(conn, conn.commit, conn.rollback, ask)
    finally:
        conn.close()


def sqlalchemy_connection(driver: str) -> Way:
    @contextmanager
    def way(dsn: str) -> Generator[Open]:
        engine = sa.create_engine(url_for(dsn, driver), poolclass=sa.NullPool)
        with engine.connect() as conn:
            yield Open(conn, conn.commit, conn.rollback, lambda sql: conn.scalar(sa.text(sql)))

    return way


def sqlalchemy_session(driver: str, *, scoped: bool = False) -> Way:
    @contextmanager
    def way(dsn: str) -> Generator[Open]:
        engine = sa.create_engine(url_for(dsn, driver), poolclass=sa.NullPool)
        made = orm.sessionmaker(engine)
        session: Any = orm.scoped_session(made) if scoped else made()
        try:
            yield Open(
                session, session.commit, session.rollback, lambda sql: session.scalar(sa.text(sql))
            )
        finally:
            session.close()

    return way


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
    """Set Django up once, without naming a database yet; it has no type stubs."""
    settings: Any = import_module("django.conf").settings
    if not settings.configured:
        unnamed = {a: {"ENGINE": "django.db.backends.postgresql"} for a in ("default", "other")}
        settings.configure(DATABASES=unnamed, USE_TZ=True)
        import_module("django").setup()
    return import_module("django.db")


def django_connection(alias: str) -> Way:
    @contextmanager
    def way(dsn: str) -> Generator[Open]:
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

        def ask(sql: str) -> Any:
            with wrapper.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchone()[0]

        atomic.__enter__()
        try:
            yield Open(conn, end, lambda: end(RuntimeError), ask)
        finally:
            if not ended:
                end(RuntimeError)
            wrapper.close()

    return way


SYNC: dict[str, Way] = {
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
async def psycopg_async_connection(dsn: str) -> AsyncGenerator[OpenAsync]:
    async with await _psycopg.AsyncConnection.connect(dsn, row_factory=dict_row) as conn:

        async def ask(sql: str) -> Any:
            row: Any = await (await conn.execute(sql.encode())).fetchone()
            return next(iter(row.values()))

        yield OpenAsync(conn, conn.commit, conn.rollback, ask)


@asynccontextmanager
async def asyncpg_connection(dsn: str) -> AsyncGenerator[OpenAsync]:
    conn = await asyncpg.connect(dsn)
    # as a caller may want their own jsonb; ours must not notice
    await conn.set_type_codec("jsonb", schema="pg_catalog", encoder=repr, decoder=repr)
    try:
        tx = conn.transaction()
        await tx.start()
        yield OpenAsync(conn, tx.commit, tx.rollback, conn.fetchval)
    finally:
        await conn.close()


@asynccontextmanager
async def asyncpg_pool(dsn: str) -> AsyncGenerator[OpenAsync]:
    async with asyncpg.create_pool(dsn, min_size=1) as pool, pool.acquire() as conn:
        tx = conn.transaction()
        await tx.start()
        yield OpenAsync(conn, tx.commit, tx.rollback, conn.fetchval)


def sqlalchemy_async_connection(driver: str) -> AsyncWay:
    @asynccontextmanager
    async def way(dsn: str) -> AsyncGenerator[OpenAsync]:
        engine = sa_asyncio.create_async_engine(url_for(dsn, driver), poolclass=sa.NullPool)
        async with engine.connect() as conn:
            yield OpenAsync(conn, conn.commit, conn.rollback, lambda sql: conn.scalar(sa.text(sql)))

    return way


def sqlalchemy_async_session(driver: str, *, scoped: bool = False) -> AsyncWay:
    @asynccontextmanager
    async def way(dsn: str) -> AsyncGenerator[OpenAsync]:
        engine = sa_asyncio.create_async_engine(url_for(dsn, driver), poolclass=sa.NullPool)
        made = sa_asyncio.async_sessionmaker(engine)
        session: Any = (
            sa_asyncio.async_scoped_session(made, asyncio.current_task) if scoped else made()
        )
        try:
            yield OpenAsync(
                session, session.commit, session.rollback, lambda sql: session.scalar(sa.text(sql))
            )
        finally:
            await session.close()

    return way


def blocking(way: Way) -> AsyncWay:
    """Let async code hold a sync connection: it may, and blocks its loop for the moment."""

    @asynccontextmanager
    async def held(dsn: str) -> AsyncGenerator[OpenAsync]:
        with way(dsn) as opened:

            async def commit() -> None:
                opened.commit()

            async def rollback() -> None:
                opened.rollback()

            async def ask(sql: str) -> Any:
                return opened.ask(sql)

            yield OpenAsync(opened.conn, commit, rollback, ask)

    return held


ASYNC: dict[str, AsyncWay] = {
    "psycopg async": psycopg_async_connection,
    "asyncpg connection": asyncpg_connection,
    "asyncpg connection of a pool": asyncpg_pool,
    "sqlalchemy async connection, psycopg": sqlalchemy_async_connection("psycopg"),
    "sqlalchemy async connection, asyncpg": sqlalchemy_async_connection("asyncpg"),
    "sqlalchemy async session, psycopg": sqlalchemy_async_session("psycopg"),
    "sqlalchemy async session, asyncpg": sqlalchemy_async_session("asyncpg"),
    "sqlalchemy async scoped session": sqlalchemy_async_session("asyncpg", scoped=True),
}
ASYNC_OR_BLOCKING: dict[str, AsyncWay] = ASYNC | {
    f"{name}, from async code": blocking(way)
    for name, way in SYNC.items()
    if not name.startswith("django")  # Django itself refuses to be used on a loop's thread
}
