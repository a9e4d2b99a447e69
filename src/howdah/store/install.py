"""Install: create the schema, or upgrade it to the version of this code.

Many processes may do it at once (one advisory lock, one transaction), and it may run again.
Migrations change the tables; functions are replaced. The role must be allowed to create a schema
in the database, or own the schema and everything in it. No superuser and no extension is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import asyncpg

from howdah.errors import SchemaMissing, SchemaNewer, SchemaOlder
from howdah.store import engine_files, install_script
from howdah.store.errors import NOT_INSTALLED, from_install_script

if TYPE_CHECKING:
    from howdah.store.store import Connection


class Installed(NamedTuple):
    """Which version of the schema a database has."""

    schema_number: int
    compatible_from: int
    fingerprint: str
    tables: str | None  # None: installed by a version that did not record it


async def installed(connection: Connection) -> Installed | None:
    """Read what is installed; None if howdah was never installed."""
    # This reads pg_class, because to_regclass uses a cache: it does not see a schema that another
    # process created while this transaction waited for the lock.
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
    """Refuse a schema that does not fit this code."""
    schema = await installed(connection)
    if schema is None:
        raise SchemaMissing(NOT_INSTALLED)
    if schema.schema_number < engine_files.SCHEMA_NUMBER:
        raise SchemaOlder(
            f"the howdah schema in this database has number {schema.schema_number}, "
            f"this code needs {engine_files.SCHEMA_NUMBER}: "
            "run `howdah install` (or `await queue.install()`)"
        )
    if schema.compatible_from > engine_files.SCHEMA_NUMBER:
        raise SchemaNewer(
            f"the howdah schema in this database has number {schema.schema_number} and works with "
            f"code for {schema.compatible_from} and newer; this code is for "
            f"{engine_files.SCHEMA_NUMBER}: upgrade the howdah package"
        )
    _refuse_development_tables(schema)


async def install(connection: Connection) -> bool:
    """Install or upgrade the schema; returns whether anything was changed."""
    try:
        async with connection.transaction():  # a separate one, because it waits for no lock
            await connection.execute(install_script.refuse_foreign())
            if await _up_to_date(connection, await installed(connection)):
                return False
        async with connection.transaction():
            await connection.execute("select pg_advisory_xact_lock(1752135524, 3)")
            await connection.execute(install_script.refuse_foreign())
            if await _up_to_date(connection, await installed(connection)):
                return False  # another process did it while this one waited
            await connection.execute(install_script.script())
    except asyncpg.PostgresError as error:
        translated = from_install_script(error)
        if translated is None:
            raise
        raise translated from None
    return True


async def _up_to_date(connection: Connection, schema: Installed | None) -> bool:
    return (
        schema is not None
        and schema.schema_number == engine_files.SCHEMA_NUMBER
        and schema.fingerprint == engine_files.fingerprint()
        and schema.tables == engine_files.tables_fingerprint()
        and await _has_every_function(connection)
    )


async def _has_every_function(connection: Connection) -> bool:
    """Whether no function was dropped since the install."""
    rows = await connection.fetch(
        "select p.proname from pg_catalog.pg_proc as p "
        "join pg_catalog.pg_namespace as n on n.oid = p.pronamespace where n.nspname = 'howdah'"
    )
    return engine_files.function_names() <= {row[0] for row in rows}


def _refuse_development_tables(schema: Installed) -> None:
    """Refuse the tables of a development version, because no migration upgrades them."""
    if (
        schema.schema_number == engine_files.SCHEMA_NUMBER
        and schema.tables != engine_files.tables_fingerprint()
    ):
        raise SchemaOlder(install_script.development_tables_message(schema.schema_number))
