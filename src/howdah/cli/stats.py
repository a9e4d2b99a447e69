"""howdah stats: how many jobs stand how, and who works."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click
from rich.table import Table
from rich.text import Text

from howdah import Queue
from howdah.cli import ground, words
from howdah.cli.options import dsn_option, json_option
from howdah.states import State
from howdah.store.ask import WorkerHealth
from howdah.text.printable import one_line

Counts = Mapping[str, Mapping[State, int]]


@click.command()
@json_option
@dsn_option
def stats(as_json: bool, dsn: str | None) -> None:
    """Count jobs by type and state, and list the workers.

    Costs the same however long the history is.
    """

    async def work(queue: Queue) -> tuple[Counts, list[WorkerHealth]]:
        return await queue.counts(), await queue.workers()

    counts, workers = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json({"jobs": counts, "workers": [_fields(one) for one in workers]})
        return
    ground.show(counts_table(counts) if counts else "no jobs yet")
    ground.show("")
    ground.show(workers_table(workers) if workers else "no workers")


def counts_table(counts: Counts) -> Table:
    """Lay out counts by type and state, with a sum below."""
    headings = [state.upper() for state in State]
    table = ground.table("TYPE", *headings, right=tuple(headings))
    for job_type in sorted(counts):
        table.add_row(one_line(job_type), *_cells(counts[job_type]))
    if len(counts) > 1:
        sums = {state: sum(c.get(state, 0) for c in counts.values()) for state in State}
        table.add_row("all", *_cells(sums), style="bold")
    return table


def _cells(counted: Mapping[State, int]) -> list[Text]:
    return [
        Text(f"{counted[state]:,}", style=words.STYLES[state])
        if counted.get(state)
        else Text("·", style="dim")
        for state in State
    ]


def workers_table(workers: Sequence[WorkerHealth]) -> Table:
    """Lay out who is alive and what each holds."""
    table = ground.table("WORKER", "STATE", "HOLDS", "SLOTS", "UP FOR", right=("HOLDS", "SLOTS"))
    table.columns[0].no_wrap, table.columns[0].overflow = False, "fold"  # an id is never cut
    for one in workers:
        state = (
            Text("alive", style="green")
            if one.alive
            else Text(f"silent for {words.length(one.silent_for)}", style="bold red")
        )
        table.add_row(
            one_line(one.id),
            state,
            str(one.holds),
            str(one.info.get("slots", "")),
            words.length(one.beat_at - one.started_at),
        )
    return table


def _fields(one: WorkerHealth) -> dict[str, object]:
    return {**one._asdict(), "silent_for": round(one.silent_for.total_seconds(), 3)}
