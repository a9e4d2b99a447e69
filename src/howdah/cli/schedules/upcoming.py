"""howdah schedules next: the firings to come."""

from __future__ import annotations

from collections.abc import Sequence

import click

from howdah import Queue
from howdah.cli import formatting, output
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.observe import Upcoming
from howdah.text.printable import one_line
from howdah.text.wording import instant


@click.command("next")
@click.argument("count", metavar="[N]", type=click.IntRange(1, 1000), default=10)
@json_option
@dsn_option
def upcoming(count: int, as_json: bool, dsn: str | None) -> None:
    """List the next N firings of all schedules; 10 by default."""

    async def work(queue: Queue) -> Sequence[Upcoming]:
        return await queue.schedules.upcoming(count)

    found = run_on_queue(dsn, work)
    if as_json:
        output.show_json(found)
        return
    if not found:
        output.note("no schedule is going to fire")
        return
    table = output.table("AT", "IN", "SCHEDULE", "TYPE")
    for each in found:
        table.add_row(
            instant(each.at), formatting.ago(each.at), one_line(each.name), one_line(each.job_type)
        )
    output.show(table)
