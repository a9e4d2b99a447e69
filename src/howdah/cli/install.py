"""howdah install: create or upgrade the schema."""

from __future__ import annotations

import click

from howdah import Queue
from howdah.cli import output
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.store.engine_files import SCHEMA_NUMBER


@click.command()
@json_option
@dsn_option
def install(dsn: str | None, as_json: bool) -> None:
    """Create or upgrade the schema in the database.

    You can run it again, also several times at once. It needs a role that may create a schema in
    the database, or that owns the schema `howdah`; it needs no superuser and no extension. In the
    embedded PostgreSQL the schema is installed automatically.
    """

    async def work(queue: Queue) -> tuple[bool, str]:
        return await queue.install(), queue.store.shown_dsn

    changed, database = run_on_queue(dsn, work)
    if as_json:
        output.show_json({"changed": changed, "schema_number": SCHEMA_NUMBER})
    elif changed:
        output.show(f"installed schema number {SCHEMA_NUMBER} in {database}")
    else:
        output.show(f"nothing to do: schema number {SCHEMA_NUMBER} is in {database}")
