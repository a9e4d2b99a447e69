"""howdah schedules: the group of its commands; alone, it lists the schedules."""

from __future__ import annotations

from collections.abc import Sequence

import click

from howdah import Queue
from howdah.cli import output
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.cli.schedules.change import pause, remove, resume, run_now, set_schedule
from howdah.cli.schedules.table import show_schedules
from howdah.cli.schedules.upcoming import upcoming
from howdah.observe import Schedule


@click.group(invoke_without_command=True)
@json_option
@dsn_option
@click.pass_context
def schedules(ctx: click.Context, as_json: bool, dsn: str | None) -> None:
    """List the schedules, or set, pause, resume, remove or run one."""
    if ctx.invoked_subcommand is not None:
        return

    async def work(queue: Queue) -> Sequence[Schedule]:
        return await queue.schedules.list()

    found = run_on_queue(dsn, work)
    if as_json:
        output.show_json(found)
    elif found:
        show_schedules(found)
    else:
        output.note("there is no schedule")


for _command in (set_schedule, pause, resume, remove, run_now, upcoming):
    schedules.add_command(_command)
