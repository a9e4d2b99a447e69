"""howdah install: make the schema, or bring it up to this code."""

from __future__ import annotations

import click

from howdah import Queue
from howdah.cli import ground
from howdah.cli.options import dsn_option, json_option
from howdah.store.engine_files import SCHEMA_NUMBER


@click.command()
@json_option
@dsn_option
def install(dsn: str | None, as_json: bool) -> None:
    """Make or upgrade the schema in the database.

    Safe to run again and by many at once. Needs a role that may create a schema in the
    database, or owns the schema `howdah` already; no superuser and no extension. The embedded
    PostgreSQL needs none of this: there it happens by itself.
    """

    async def work(queue: Queue) -> tuple[bool, str]:
        return await queue.install(), queue.store.shown_dsn

    changed, where = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json({"changed": changed, "schema_number": SCHEMA_NUMBER})
    elif changed:
        ground.show(f"installed schema number {SCHEMA_NUMBER} in {where}")
    else:
        ground.show(f"nothing to do: schema number {SCHEMA_NUMBER} is in {where}")
