"""howdah why: why a job, or a type of jobs, does not run."""

from __future__ import annotations

from uuid import UUID

import click

from howdah import Queue, observe
from howdah.cli import ground
from howdah.cli.ground import Exit
from howdah.cli.options import dsn_option, json_option
from howdah.observe import Why
from howdah.printable import clean


@click.command()
@click.argument("id_or_type", metavar="ID|TYPE")
@json_option
@dsn_option
def why(id_or_type: str, as_json: bool, dsn: str | None) -> None:
    """Say why a job, or a type of jobs, does not run.

    One sentence: not due yet, paused, no worker knows the type, all slots busy, behind others,
    waiting for a retry, running, or how it ended. Exit code 0 when it goes on by itself or has
    completed, 1 when it stays like this until somebody does something, 3 when there is no such
    job.
    """
    job_id = _job_id(id_or_type)

    async def work(queue: Queue) -> Why:
        if job_id is not None:
            return await queue.why(job_id)
        return await observe.why_type(queue.store, id_or_type)

    answer = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json(answer)
    else:
        ground.show(clean(answer.sentence))
    ground.leave(Exit.FAILED if answer.needs_a_person else Exit.OK)


def _job_id(text: str) -> UUID | None:
    """Read an id; whatever is none names a type."""
    try:
        return UUID(text)
    except ValueError:
        return None
