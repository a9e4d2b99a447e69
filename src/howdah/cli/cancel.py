"""howdah cancel: end jobs that nobody needs any more."""

from __future__ import annotations

from uuid import UUID

import click

from howdah import Queue
from howdah.cli import ground
from howdah.cli.moved import Moved, show_moved
from howdah.cli.options import dsn_option, job_id, json_option


@click.command()
@click.argument("ids", metavar="ID...", type=job_id, nargs=-1, required=True)
@click.option("--reason", default="cancelled", show_default=True, help="Kept as the job's error.")
@json_option
@dsn_option
def cancel(ids: tuple[UUID, ...], reason: str, as_json: bool, dsn: str | None) -> None:
    """Cancel jobs, waiting or at work.

    A job at work is taken from its worker at once, and its handler is stopped. Exit code 1
    when one of them had ended already, 3 when there is no such job.
    """

    async def work(queue: Queue) -> Moved:
        return await Moved.of(queue, ids, await queue.cancel(ids, reason))

    show_moved(ground.on_queue(dsn, work), "cancelled", as_json)
