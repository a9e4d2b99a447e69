"""Install: make the schema, or bring it up to this code.

Safe when ten processes do it at once (one advisory lock, one transaction) and when there is
nothing to do. Tables go forward by migrations, functions are replaced. Needs a role that may
create a schema in the database, or owns the schema and all in it; no superuser, no extension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import asyncpg

from howdah.errors import SchemaMissing, SchemaNewer, SchemaOlder
from howdah.store import engine_files, install_script
from howdah.store.errors import NOT_INSTALLED, refusal_of_script

if TYPE_CHECKING:
    from howdah.store.store import Connection


class Installed(NamedTuple):
    """What a database holds."""

    schema_number: int
    compatible_from: int
    fingerprint: str
    tables: str | None  # None: made before any release, when it was not written down


async def installed(connection: Connection) -> Installed | None:
    """Say what this database holds; None where howdah was never installed."""
    # Read from the table and not by to_regclass: that asks a cache, which does not hear of the
    # schema that another process made while this transaction waited for the lock.
    if not await connection.fetchval(
        "select exists (select from pg_catalog.pg_class as c "
        "join pg_catalog.pg_namespace as n on n.oid = c.relnamespace "
        "where n.nspname = 'howdah' and c.relname = 'installed')"
    ):
        return None
    row = await connection.fetchrow(
        "select schema_number, compatible_from, fingerprint, to_jsonb(i) ->> 'tables' "
        "from howdah.installed as i"
    )
    return Installed(*row) if row else None


async def check(connection: Connection) -> None:
    """Refuse to work on a schema that this code does not fit."""
    found = await installed(connection)
    if found is None:
        raise SchemaMissing(NOT_INSTALLED)
    if found.schema_number < engine_files.SCHEMA_NUMBER:
        raise SchemaOlder(
            f"the howdah schema in this database has number {found.schema_number}, this code needs "
            f"{engine_files.SCHEMA_NUMBER}: run `howdah install` (or `await queue.install()`)"
        )
    if found.compatible_from > engine_files.SCHEMA_NUMBER:
        raise SchemaNewer(
            f"the howdah schema in this database has number {found.schema_number} and works with "
            f"code for {found.compatible_from} and newer; this code is for "
            f"{engine_files.SCHEMA_NUMBER}: upgrade the howdah package"
        )
    _refuse_between_releases(found)


async def install(connection: Connection) -> bool:
    """Make or upgrade the schema; returns whether anything had to be done."""
    try:
        async with connection.transaction():  # of its own, so that it waits for no lock
            await connection.execute(install_script.refuse_foreign())
            if await _up_to_date(connection, await installed(connection)):
                return False
        async with connection.transaction():
            await connection.execute("select pg_advisory_xact_lock(1752135524, 3)")
            await connection.execute(install_script.refuse_foreign())
            if await _up_to_date(connection, await installed(connection)):
                return False  # by another process, while this one waited
            await connection.execute(install_script.whole())
    except asyncpg.PostgresError as error:
        refused = refusal_of_script(error)
        if refused is None:
            raise
        raise refused from None
    return True


async def _up_to_date(connection: Connection, found: Installed | None) -> bool:
    return (
        found is not None
        and found.schema_number == engine_files.SCHEMA_NUMBER
        and found.fingerprint == engine_files.fingerprint()
        and found.tables == engine_files.tables()
        and await _has_every_function(connection)
    )


async def _has_every_function(connection: Connection) -> bool:
    """Whether nobody has dropped one of them."""
    there = await connection.fetch(
        "select p.proname from pg_catalog.pg_proc as p "
        "join pg_catalog.pg_namespace as n on n.oid = p.pronamespace where n.nspname = 'howdah'"
    )
    return engine_files.function_names() <= {row[0] for row in there}


def _refuse_between_releases(found: Installed) -> None:
    """Tell a release's tables from those of a development state, which nothing leads on from."""
    if found.schema_number == engine_files.SCHEMA_NUMBER and found.tables != engine_files.tables():
        raise SchemaOlder(install_script.between_releases(found.schema_number))
