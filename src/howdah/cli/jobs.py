"""howdah jobs: list jobs, newest first, page by page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from uuid import UUID

import click
from rich.table import Table

from howdah import Queue
from howdah.cli import ground, words
from howdah.cli.options import dsn_option, job_id, json_option
from howdah.job import Job
from howdah.states import State
from howdah.store.address import without_password

ROOMY = 120  # columns from which on the worker is shown as well


@click.command()
@click.option(
    "--status",
    "statuses",
    type=click.Choice([str(state) for state in State]),
    multiple=True,
    help="Only jobs in this state; may be given more than once.",
)
@click.option("--type", "types", metavar="TYPE", multiple=True, help="Only jobs of this type.")
@click.option("--worker", metavar="ID", help="Only jobs that this worker holds or ended.")
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=20,
    show_default=True,
    help="How many.",
)
@click.option("--before", type=job_id, metavar="ID", help="Go on behind this job: the next page.")
@json_option
@dsn_option
def jobs(
    statuses: tuple[str, ...],
    types: tuple[str, ...],
    worker: str | None,
    limit: int,
    before: UUID | None,
    as_json: bool,
    dsn: str | None,
) -> None:
    """List jobs, newest first."""

    async def work(queue: Queue) -> list[Job]:
        return await queue.jobs(
            status=statuses, job_type=types, worker_id=worker, before=before, limit=limit
        )

    page = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json(page)
        return
    if not page:
        ground.remark("no jobs here" if statuses or types or worker or before else "no jobs yet")
        return
    ground.show(_table(page))
    if len(page) == limit:
        command = ["howdah", "jobs"]
        for name, values in (("--status", statuses), ("--type", types)):
            for value in values:
                command += [name, value]
        if worker is not None:
            command += ["--worker", worker]
        if dsn is not None:
            command += ["--dsn", without_password(dsn)]
        command += ["--limit", str(limit), "--before", str(page[-1].id)]
        ground.remark(f"next page: {shlex.join(command)}")


def _table(page: Sequence[Job]) -> Table:
    roomy = ground.screen().width >= ROOMY
    table = ground.table(
        "ID", "TYPE", "STATUS", "PRIO", "TRY", "AGE", "PROGRESS", right=("PRIO", "TRY", "AGE")
    )
    table.columns[0].min_width = 36  # an id that is cut is of no use
    if roomy:
        table.add_column("WORKER", no_wrap=True, overflow="ellipsis")
        table.add_column("ERROR", no_wrap=True, overflow="ellipsis")
    for job in page:
        row = [
            str(job.id),
            words.one_line(job.job_type),
            words.status(job.status),
            str(job.priority),
            f"{job.attempts}/{job.max_attempts}",
            words.ago(job.created_at).removesuffix(" ago"),
            words.progress(job),
        ]
        if roomy:
            row += [words.one_line(job.worker_id or ""), words.one_line(job.last_error or "")]
        table.add_row(*row)
    return table
