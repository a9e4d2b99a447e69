"""howdah stats: count jobs by type and state, and list the workers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import click
from rich.table import Table
from rich.text import Text

from howdah import Queue
from howdah.checks.queue_names import DEFAULT_QUEUE
from howdah.cli import formatting, output
from howdah.cli.options import dsn_option, json_option, queue_names, queue_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.observe.queues import check_queues, queue_of_types
from howdah.observe.workers import WorkerHealth
from howdah.states import State
from howdah.text.printable import one_line

Counts = Mapping[str, Mapping[State, int]]
Queues = Mapping[str, str]  # the queue of each type that is not in the queue `default`


@click.command()
@queue_option("Only types in this queue; can be repeated.")
@json_option
@dsn_option
def stats(queues: tuple[str, ...], as_json: bool, dsn: str | None) -> None:
    """Count jobs by type and state, and list the workers.

    The cost does not depend on the length of the history.
    """
    wanted = queue_names(queues)

    async def work(queue: Queue) -> tuple[Counts, Queues, list[WorkerHealth]]:
        await check_queues(queue.store, wanted)
        counts, queue_of = await queue.counts(), await queue_of_types(queue.store)
        return _of_queues(counts, queue_of, wanted), queue_of, await queue.workers()

    counts, queue_of, workers = run_on_queue(dsn, work)
    if as_json:
        named = {job_type: queue_of.get(job_type, DEFAULT_QUEUE) for job_type in counts}
        output.show_json(
            {"jobs": counts, "queues": named, "workers": [_fields(worker) for worker in workers]}
        )
        return
    nothing = "no job of these queues" if wanted else "no jobs yet"
    output.show(counts_table(counts, queue_of) if counts else nothing)
    output.show("")
    output.show(workers_table(workers) if workers else "no workers")


def _of_queues(counts: Counts, queue_of: Queues, wanted: Collection[str]) -> Counts:
    if not wanted:
        return counts
    return {
        job_type: states
        for job_type, states in counts.items()
        if queue_of.get(job_type, DEFAULT_QUEUE) in wanted
    }


def counts_table(counts: Counts, queue_of: Queues) -> Table:
    """Make a table of the counts by type and state, with their sums.

    It has the queues of the types if one of these types has another queue than `default`.
    """
    headings = [state.upper() for state in State]
    with_queues = any(job_type in queue_of for job_type in counts)
    first = ("TYPE", "QUEUE") if with_queues else ("TYPE",)
    table = output.table(*first, *headings, right=tuple(headings))
    for job_type in sorted(counts):
        names = (job_type, queue_of.get(job_type, DEFAULT_QUEUE))[: len(first)]
        table.add_row(*map(one_line, names), *_cells(counts[job_type]))
    if len(counts) > 1:
        sums = {state: sum(c.get(state, 0) for c in counts.values()) for state in State}
        table.add_row(*("all", "")[: len(first)], *_cells(sums), style="bold")
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
