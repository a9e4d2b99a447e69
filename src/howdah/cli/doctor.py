"""howdah doctor: what is wrong with the queue, and what to do about it."""

from __future__ import annotations

from datetime import timedelta

import click
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from howdah import Queue, observe
from howdah.cli import ground
from howdah.cli.options import dsn_option, duration, json_option
from howdah.observe import Check, Diagnosis, Level
from howdah.text.printable import clean

STYLES = {
    Level.FINE: "green",
    Level.UNKNOWN: "dim",
    Level.WARNING: "yellow",
    Level.CRITICAL: "bold red",
}


@click.command()
@click.option(
    "--within",
    type=duration,
    metavar="DURATION",
    default="5s",
    show_default=True,
    help="How long the database may take for one check.",
)
@json_option
@dsn_option
def doctor(within: timedelta, as_json: bool, dsn: str | None) -> None:
    """Look for what is wrong with a PostgreSQL queue.

    Each finding says what it means and what to do. The exit code is for monitoring: 0 when all
    is fine, 1 when there are warnings, 2 when something is critical; what cannot be seen counts as
    fine. 4 when the database cannot be reached, 5 when the schema does not fit.
    """

    async def work(queue: Queue) -> Diagnosis:
        return await observe.examine(queue.store, within=within)

    found = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json(
            {"level": found.level.word, "checks": [_fields(one) for one in found.checks]}
        )
    else:
        ground.show(Group(*map(_shown, found.checks)))
    click.get_current_context().exit(exit_code(found.level))


def exit_code(level: Level) -> int:
    """Say it as monitoring plugins do."""
    return {Level.WARNING: 1, Level.CRITICAL: 2}.get(level, 0)


def _shown(check: Check) -> RenderableType:
    line = Text.assemble(
        (f"{check.level.word:<10}", STYLES[check.level]),
        (f"{check.name:<19}", "bold"),
        clean(check.sentence),
    )
    if not check.advice:
        return line
    return Group(line, Padding(Text(clean(check.advice)), (0, 0, 0, 29)))


def _fields(check: Check) -> dict[str, object]:
    return {
        "name": check.name,
        "level": check.level.word,
        "sentence": check.sentence,
        "advice": check.advice,
        "value": check.value,
        "unit": check.unit,
    }
