"""howdah stats: count jobs by type and state, and list the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
from rich.table import Table
from rich.text import Text

from howdah import Queue
from howdah.cli import formatting, output
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.observe.workers import WorkerHealth
from howdah.states import State
from howdah.text.printable import one_line

Counts = Mapping[str, Mapping[State, int]]


@click.command()
@json_option
@dsn_option
def stats(as_json: bool, dsn: str | None) -> None:
    """Count jobs by type and state, and list the workers.

    The cost does not depend on the length of the history.
    """

    async def work(queue: Queue) -> tuple[Counts, list[WorkerHealth]]:
        return await queue.counts(), await queue.workers()

    counts, workers = run_on_queue(dsn, work)
    if as_json:
        output.show_json({"jobs": counts, "workers": [_fields(worker) for worker in workers]})
        return
    output.show(counts_table(counts) if counts else "no jobs yet")
    output.show("")
    output.show(workers_table(workers) if workers else "no workers")


def counts_table(counts: Counts) -> Table:
    """Make a table of the counts by type and state, with their sums."""
    headings = [state.upper() for state in State]
    table = output.table("TYPE", *headings, right=tuple(headings))
    for job_type in sorted(counts):
        table.add_row(one_line(job_type), *_cells(counts[job_type]))
    if len(counts) > 1:
        sums = {state: sum(c.get(state, 0) for c in counts.values()) for state in State}
        table.add_row("all", *_cells(sums), style="bold")
    return table


def _cells(counted: Mapping[State, int]) -> list[Text]:
    return [
        Text(f"{counted[state]:,}", style=formatting.STYLES[state])
        if counted.get(state)
        else Text("·", style="dim")
        for state in State
    ]


def workers_table(workers: Sequence[WorkerHealth]) -> Table:
    """Make a table of the workers and what each holds."""
    table = output.table("WORKER", "STATE", "HOLDS", "SLOTS", "UP FOR", right=("HOLDS", "SLOTS"))
    table.columns[0].no_wrap, table.columns[0].overflow = (
        False,
        "fold",
    )  # an id is always shown in full
    for worker in workers:
        state = (
            Text("alive", style="green")
            if worker.alive
            else Text(f"silent for {formatting.length(worker.silent_for)}", style="bold red")
        )
        table.add_row(
            one_line(worker.id),
            state,
            str(worker.holds),
            str(worker.info.get("slots", "")),
            formatting.length(worker.beat_at - worker.started_at),
        )
    return table


def _fields(worker: WorkerHealth) -> dict[str, object]:
    return {**worker._asdict(), "silent_for": round(worker.silent_for.total_seconds(), 3)}
