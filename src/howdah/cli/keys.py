"""howdah keys: count the jobs of a type by concurrency key."""

from __future__ import annotations

import click
from rich.table import Table

from howdah import Queue
from howdah.cli import output
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.observe import KeyCounts
from howdah.text.printable import one_line
from howdah.text.wording import key_slots


@click.command()
@click.argument("job_type", metavar="TYPE")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many keys to list.",
)
@json_option
@dsn_option
def keys(job_type: str, limit: int, as_json: bool, dsn: str | None) -> None:
    """Count the jobs of a type by concurrency key.

    For each key: how many jobs hold a slot, and how many wait for one. Keys for which most jobs
    wait come first. Of a type with thousands of keys not all are compared: only the first ones by
    their names, and those that are most frequent in a sample.
    """

    async def work(queue: Queue) -> KeyCounts:
        return await queue.key_counts(job_type, limit)

    counted = run_on_queue(dsn, work)
    if as_json:
        output.show_json(counted)
        return
    if not counted.keys:
        output.note(f"no job of {one_line(job_type)} holds a slot of a key or waits for one")
    else:
        output.note(key_slots(counted.at_once, counted.ordered, counted.fair))
        output.show(_table(counted))
    if counted.exhausted:
        output.note("there are too many keys to compare them all")
    elif counted.more:
        output.note(f"there are more keys: --limit {min(1000, 10 * limit)}")


def _table(counted: KeyCounts) -> Table:
    table = output.table("HOLDING", "WAITING", "KEY", right=("HOLDING", "WAITING"))
    for of_key in counted.keys:
        table.add_row(str(of_key.holding), str(of_key.waiting), one_line(of_key.key))
    return table
