"""howdah cancel: cancel jobs that are not needed any more."""

from __future__ import annotations

from uuid import UUID

import click

from howdah import Queue
from howdah.cli.options import dsn_option, job_id, json_option
from howdah.cli.results import Results, show_results
from howdah.cli.run_on_queue import run_on_queue


@click.command()
@click.argument("ids", metavar="ID...", type=job_id, nargs=-1, required=True)
@click.option(
    "--reason", default="cancelled", show_default=True, help="Stored as the error of the job."
)
@json_option
@dsn_option
def cancel(ids: tuple[UUID, ...], reason: str, as_json: bool, dsn: str | None) -> None:
    """Cancel jobs that wait or run.

    A running job is taken from its worker at once, and its handler is stopped. Exit code 1 if a
    job had already ended, 3 if a job does not exist.
    """

    async def work(queue: Queue) -> Results:
        return await Results.collect(queue, ids, await queue.cancel(ids, reason))

    show_results(run_on_queue(dsn, work), "cancelled", as_json)
