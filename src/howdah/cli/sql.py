"""howdah sql: print the engine, or what each role needs, as SQL. Needs no database."""

from __future__ import annotations

import click

from howdah.cli.options import dsn_option
from howdah.payload import is_text
from howdah.store import engine_files, install_script

ROLES = {
    "producer": "howdah_producer",
    "worker": "howdah_worker",
    "observer": "howdah_observer",
}


@click.command()
@click.option(
    "--from",
    "start",
    metavar="N",
    type=click.IntRange(min=0),
    help="Print the way from schema number N; 0: nothing is installed.",
)
@click.option("--grants", is_flag=True, help="Print the GRANTs of the three roles instead.")
@click.option("--producer", metavar="ROLE", help="Who may enqueue and nothing else.")
@click.option("--worker", metavar="ROLE", help="Who may work.")
@click.option("--observer", metavar="ROLE", help="Who may read and nothing else.")
@dsn_option
def sql(
    start: int | None,
    grants: bool,
    producer: str | None,
    worker: str | None,
    observer: str | None,
    dsn: str | None,
) -> None:
    """Print the whole engine as one SQL file.

    For psql, or for a migration tool of your own:

    \b
        howdah sql > howdah.sql
        psql -v ON_ERROR_STOP=1 -f howdah.sql

    It is one statement: it makes the schema, or upgrades an older one, or replaces the
    functions of this one. It can run again, inside a transaction of yours or without one, and
    leaves your session's settings as they were. With --from, print only the way from one
    schema number; a database that has another number is refused before anything is changed.

    With --grants, print what a producer, a worker and an observer need. The roles must exist;
    without names they are howdah_producer, howdah_worker and howdah_observer. Prints SQL and
    asks no database, so --dsn changes nothing here.
    """  # noqa: D301 - \b keeps click from rewrapping
    names = {"producer": producer, "worker": worker, "observer": observer}
    for role, name in names.items():
        if name is not None and not grants:
            raise click.UsageError(f"--{role} names a role for --grants: say both")
        if name is not None and not (is_text(name) and 1 <= len(name.encode()) <= 63):
            raise click.BadParameter("a role's name has 1 to 63 bytes", param_hint=f"--{role}")
    if start is not None and grants:
        raise click.UsageError("--from is for the engine, --grants for the roles: say one of them")
    if start is not None and start > engine_files.SCHEMA_NUMBER:
        raise click.BadParameter(
            f"this howdah knows schema numbers up to {engine_files.SCHEMA_NUMBER}, not {start}: "
            "upgrade the howdah package, or name the number that the database has",
            param_hint="--from",
        )
    if grants:
        click.echo(
            engine_files.grants(**{role: names[role] or ROLES[role] for role in ROLES}), nl=False
        )
    else:
        click.echo(install_script.whole(start), nl=False)
