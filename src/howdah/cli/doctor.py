"""howdah doctor: check the queue and its database for problems."""

from __future__ import annotations

from datetime import timedelta

import click
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from howdah import Queue, observe
from howdah.cli import output
from howdah.cli.options import dsn_option, duration, json_option
from howdah.cli.run_on_queue import run_on_queue
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
    help="How long one check may take.",
)
@json_option
@dsn_option
def doctor(within: timedelta, as_json: bool, dsn: str | None) -> None:
    """Check the queue and its database for problems.

    Each problem says what it means and what to do. The exit code is for monitoring: 0 if all is
    fine, 1 for warnings, 2 if something is critical, 4 if the database is unreachable, 5 if the
    schema does not fit. A check that could not be made counts as fine.
    """

    async def work(queue: Queue) -> Diagnosis:
        return await observe.examine(queue.store, within=within)

    diagnosis = run_on_queue(dsn, work)
    if as_json:
        output.show_json(
            {
                "level": diagnosis.level.word,
                "checks": [_fields(check) for check in diagnosis.checks],
            }
        )
    else:
        output.show(Group(*map(_shown, diagnosis.checks)))
    click.get_current_context().exit(exit_code(diagnosis.level))


def exit_code(level: Level) -> int:
    """Return the exit code of a level, as monitoring plugins define it."""
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
