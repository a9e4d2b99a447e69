"""howdah jobs: list jobs, newest first, page by page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from uuid import UUID

import click
from rich.cells import cell_len
from rich.table import Table

from howdah import Queue
from howdah.cli import formatting, output
from howdah.cli.options import dsn_option, job_id, json_option, queue_names, queue_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.job import Job
from howdah.states import State
from howdah.store.dsn import without_password
from howdah.text.printable import one_line
from howdah.waits_for import WaitsFor

GAP = 2
BY_IMPORTANCE = {  # the columns, with their least useful width
    **{"ID": 36, "STATUS": 9, "TYPE": 8, "TRY": 3, "AGE": 3, "DONE": 4, "PRIO": 4},
    **{"WAITS FOR": 9, "KEY": 8, "STAGE": 8, "ERROR": 16, "WORKER": 12},
}


@click.command()
@click.option(
    "--status",
    "statuses",
    type=click.Choice([str(state) for state in State]),
    multiple=True,
    help="Only jobs in this state; can be repeated.",
)
@click.option(
    "--type",
    "types",
    metavar="TYPE",
    multiple=True,
    help="Only jobs of this type; can be repeated.",
)
@queue_option("Only jobs of types in this queue; can be repeated.")
@click.option("--worker", metavar="ID", help="Only jobs that this worker holds or has ended.")
@click.option("--key", metavar="KEY", help="Only jobs with this concurrency key.")
@click.option(
    "--limited-by",
    metavar="NAME",
    help="Only jobs under this limit; for one key of a limit per key: NAME:KEY.",
)
@click.option(
    "--waits-for",
    "waits_for",
    type=click.Choice([str(each) for each in WaitsFor]),
    multiple=True,
    help="Only pending jobs that wait for this: their time, their retry, a slot of their key, "
    "their limit, or a worker; can be repeated.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many jobs to list.",
)
@click.option(
    "--before", type=job_id, metavar="ID", help="List jobs older than this one: the next page."
)
@json_option
@dsn_option
def jobs(
    statuses: tuple[str, ...],
    types: tuple[str, ...],
    queues: tuple[str, ...],
    worker: str | None,
    key: str | None,
    limited_by: str | None,
    waits_for: tuple[str, ...],
    limit: int,
    before: UUID | None,
    as_json: bool,
    dsn: str | None,
) -> None:
    """List jobs, newest first.

    The waiting jobs of a --limited-by, and of a --key with a --type, are found by an index. With
    other filters it reads jobs from the newest on, until --limit of them match: at most all that
    have not ended for --waits-for, else at most all.
    """

    async def work(queue: Queue) -> list[Job]:
        return await queue.jobs(
            status=statuses,
            job_type=types,
            queue=queue_names(queues),
            worker_id=worker,
            key=key,
            limited_by=limited_by,
            waits_for=waits_for,
            before=before,
            limit=limit,
        )

    page = run_on_queue(dsn, work)
    if as_json:
        output.show_json(page)
        return
    if not page:
        filtered = statuses or types or queues or worker or key or limited_by or waits_for or before
        output.note("no job matches" if filtered else "no jobs yet")
        return
    output.show(_table(page, output.console().width))
    if len(page) == limit:
        command = ["howdah", "jobs"]
        options: dict[str, Sequence[str | None]] = {
            **{"--status": statuses, "--type": types, "--queue": queues, "--worker": [worker]},
            **{"--key": [key], "--limited-by": [limited_by], "--waits-for": waits_for},
            "--dsn": [dsn and without_password(dsn)],
        }
        for name, values in options.items():
            for value in values:
                command += [] if value is None else [name, value]
        command += ["--limit", str(limit), "--before", str(page[-1].id)]
        output.note(f"next page: {shlex.join(command)}")


def _table(page: Sequence[Job], width: int) -> Table:
    """Make the table: ids in full, the other columns as far as they fit."""
    hidden = () if any(job.key or job.limited_by for job in page) else ("KEY", "WAITS FOR")
    rows = [{n: cell for n, cell in _row(job).items() if n not in hidden} for job in page]
    widths = _widths(
        {name: max(cell_len(name), *(cell_len(row[name]) for row in rows)) for name in rows[0]},
        width,
    )
    table = output.table(*widths, right=("PRIO", "TRY", "AGE", "DONE"))
    for column, column_width in zip(table.columns, widths.values(), strict=True):
        column.width = column_width
    for job, row in zip(page, rows, strict=True):
        cells = [
            formatting.status(job.status) if name == "STATUS" else row[name] for name in widths
        ]
        table.add_row(*cells)
    return table


def _widths(natural: dict[str, int], available: int) -> dict[str, int]:
    """Choose the columns that fit, and their widths, by importance."""
    chosen: dict[str, int] = {}
    for name, least in BY_IMPORTANCE.items():
        if name not in natural:
            continue
        width = min(natural[name], available)
        if width >= min(natural[name], least):
            if name == "TYPE":
                width = min(width, max(available // 3, least))
            chosen[name] = width
            available -= width + GAP
    return {name: chosen[name] for name in natural if name in chosen}


def _row(job: Job) -> dict[str, str]:
    return {
        "ID": str(job.id),
        "TYPE": one_line(job.job_type),
        "STATUS": job.status,
        "PRIO": str(job.priority),
        "TRY": f"{job.attempts}/{job.max_attempts}",
        "AGE": formatting.age(job.created_at),
        "DONE": f"{job.progress}%" if job.attempts else "",
        "WAITS FOR": job.waits_for or "",
        "KEY": one_line(job.key or ""),
        "STAGE": one_line(job.current_stage or ""),
        "WORKER": one_line(job.worker_id or ""),
        "ERROR": one_line(job.last_error or ""),
    }
