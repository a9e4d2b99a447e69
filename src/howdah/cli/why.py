"""howdah why: why a job, or a type of jobs, does not run."""

from __future__ import annotations

from uuid import UUID

import click

from howdah import Queue, observe
from howdah.cli import ground
from howdah.cli.ground import Exit
from howdah.cli.options import dsn_option, json_option
from howdah.observe import Why, short_id
from howdah.text.printable import clean


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

    async def work(queue: Queue) -> Why:
        id = await _job_id(queue, id_or_type)
        if id is not None:
            return await queue.why(id)
        return await observe.why_type(queue.store, id_or_type)

    answer = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json(answer)
    else:
        ground.show(clean(answer.sentence))
    ground.leave(Exit.FAILED if answer.needs_a_person else Exit.OK)


async def _job_id(queue: Queue, text: str) -> UUID | None:
    """Read an id, or a part of one as lists show it; whatever is none names a type."""
    try:
        return UUID(text)
    except ValueError:
        found = await short_id.find(queue.store, text)
    if found is None or not (found.ids or found.marked):  # hex digits may be the name of a type
        return None
    return short_id.only(found, text)
