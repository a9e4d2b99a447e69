"""howdah sql: print the SQL of the engine, or of the roles. Uses no database."""

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
    help="Print the upgrade from schema number N only; 0 means that nothing is installed.",
)
@click.option("--grants", is_flag=True, help="Print the GRANTs of the three roles instead.")
@click.option("--producer", metavar="ROLE", help="With --grants: the role that may only enqueue.")
@click.option("--worker", metavar="ROLE", help="With --grants: the role that may run jobs.")
@click.option("--observer", metavar="ROLE", help="With --grants: the role that may only read.")
@dsn_option
def sql(
    start: int | None,
    grants: bool,
    producer: str | None,
    worker: str | None,
    observer: str | None,
    dsn: str | None,
) -> None:
    """Print the whole engine as SQL.

    For psql, or for your migration tool:

    \b
        howdah sql > howdah.sql
        psql -v ON_ERROR_STOP=1 -f howdah.sql

    It is one statement. It creates the schema, upgrades an older one, or replaces the functions of
    the current one. You can run it again, inside your transaction or without one; it does not
    change the settings of your session. With --from, it only upgrades from that schema number, and
    fails without a change if the database has another number.

    With --grants, prints what a producer, a worker and an observer need. The roles must exist; by
    default they are howdah_producer, howdah_worker and howdah_observer. The command uses no
    database, so --dsn has no effect here.
    """  # noqa: D301 - \b keeps click from rewrapping
    names = {"producer": producer, "worker": worker, "observer": observer}
    for role, name in names.items():
        if name is not None and not grants:
            raise click.UsageError(f"--{role} needs --grants: add it, or leave --{role} out")
        if name is not None and not (is_text(name) and 1 <= len(name.encode()) <= 63):
            raise click.BadParameter(
                "the name of a role must have 1 to 63 bytes, and no NUL", param_hint=f"--{role}"
            )
    if start is not None and grants:
        raise click.UsageError(
            "--from prints the engine and --grants the roles: use only one of them"
        )
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
        click.echo(install_script.script(start), nl=False)
