"""Install: make the schema, or bring it up to this code.

Safe when ten processes do it at once (one advisory lock, one transaction) and when there is
nothing to do. Tables go forward by migrations, functions are replaced. Needs a role that may
create a schema in the database, or owns the schema and all in it; no superuser, no extension.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from howdah.errors import NotAllowed, SchemaMissing, SchemaNewer, SchemaOlder
from howdah.store import bundle
from howdah.store.refusals import NOT_INSTALLED

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
    if found.schema_number < bundle.SCHEMA_NUMBER:
        raise SchemaOlder(
            f"the howdah schema in this database has number {found.schema_number}, this code needs "
            f"{bundle.SCHEMA_NUMBER}: run `howdah install` (or `await queue.install()`)"
        )
    if found.compatible_from > bundle.SCHEMA_NUMBER:
        raise SchemaNewer(
            f"the howdah schema in this database has number {found.schema_number} and works with "
            f"code for {found.compatible_from} and newer; this code is for {bundle.SCHEMA_NUMBER}: "
            "upgrade the howdah package"
        )
    _refuse_between_releases(found)


async def install(connection: Connection) -> bool:
    """Make or upgrade the schema; returns whether anything had to be done."""
    async with connection.transaction():  # of its own, so that it waits for no lock
        await _refuse_foreign_schema(connection)
        if await _up_to_date(connection, await installed(connection)):
            return False
    async with connection.transaction():
        await connection.execute("set local search_path = pg_catalog")
        await connection.execute("select pg_advisory_xact_lock(1752135524, 3)")
        await _refuse_foreign_schema(connection)
        found = await installed(connection)
        if await _up_to_date(connection, found):
            return False
        if found is None:
            for file in bundle.engine():
                await connection.execute(file.text)
        elif found.schema_number > bundle.SCHEMA_NUMBER:
            raise SchemaNewer(
                f"the howdah schema in this database has number {found.schema_number}, newer than "
                f"this code's {bundle.SCHEMA_NUMBER}: upgrade the howdah package"
            )
        else:
            _refuse_between_releases(found)
            for number, migration in sorted(bundle.migrations().items()):
                if number > found.schema_number:
                    await connection.execute(migration)
            await connection.execute(bundle.functions())
        await connection.execute(bundle.record())
        await connection.execute(bundle.closing())
    return True


_FOREIGN = """
    select current_user, pg_get_userbyid(n.nspowner), n.nspowner = me.oid,
           (select min(format('%s (%s)', owned.name, pg_get_userbyid(owned.owner)))
            from (select relname::text, relowner from pg_class where relnamespace = n.oid
                  union all
                  select proname::text, proowner from pg_proc where pronamespace = n.oid
                  union all
                  select typname::text, typowner from pg_type where typnamespace = n.oid
                 ) as owned (name, owner)
            where owned.owner <> me.oid)
    from pg_namespace as n, pg_roles as me
    where n.nspname = 'howdah' and me.rolname = current_user
"""


async def _refuse_foreign_schema(connection: Connection) -> None:
    """Refuse a schema that is not ours: its tables could run their owner's code with our rights.

    Whoever may create schemas in a database may have made one of this name before us.
    """
    await connection.execute("set local search_path = pg_catalog")
    found = await connection.fetchrow(_FOREIGN)
    if found is None:
        return
    us, owner, ours, foreign = found
    if not ours:
        raise NotAllowed(
            f"the schema howdah in this database belongs to the role {owner}, and you are {us}: "
            f"install as {owner}, or, if it is not meant to be there, drop it first"
        )
    if foreign is not None:
        raise NotAllowed(
            f"the schema howdah holds something that is not yours: {foreign}. "
            f"Make {us} its owner, or drop it, then install again"
        )


async def _up_to_date(connection: Connection, found: Installed | None) -> bool:
    return (
        found is not None
        and found.schema_number == bundle.SCHEMA_NUMBER
        and found.fingerprint == bundle.fingerprint()
        and found.tables == bundle.tables()
        and await _has_every_function(connection)
    )


async def _has_every_function(connection: Connection) -> bool:
    """Whether nobody has dropped one of them."""
    there = await connection.fetch(
        "select p.proname from pg_catalog.pg_proc as p "
        "join pg_catalog.pg_namespace as n on n.oid = p.pronamespace where n.nspname = 'howdah'"
    )
    return bundle.function_names() <= {row[0] for row in there}


def _refuse_between_releases(found: Installed) -> None:
    """Tell a release's tables from those of a development state, which nothing leads on from."""
    if found.schema_number == bundle.SCHEMA_NUMBER and found.tables != bundle.tables():
        raise SchemaOlder(
            "the howdah schema in this database was made by a development version, whose tables "
            f"are not those of schema number {found.schema_number}, and no migration leads on from "
            "there: `drop schema howdah cascade` forgets it and its jobs, then run `howdah install`"
        )
