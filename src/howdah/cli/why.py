"""howdah why: say why a job, or a job type, does not run."""

from __future__ import annotations

from uuid import UUID

import click

from howdah import Queue, observe
from howdah.cli import output
from howdah.cli.exit_codes import ExitCode, exit_with
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.observe import Why, short_id
from howdah.text.printable import clean


@click.command()
@click.argument("id_or_type", metavar="ID|TYPE")
@json_option
@dsn_option
def why(id_or_type: str, as_json: bool, dsn: str | None) -> None:
    """Say why a job, or a job type, does not run.

    Prints one sentence: not due yet, paused, no worker for the type, all slots busy, other jobs
    first, waiting for a retry, running, or how it ended. Exit code 0 if it continues by itself
    or has completed, 1 if you have to do something, 3 if the job does not exist.
    """

    async def work(queue: Queue) -> Why:
        id = await _job_id(queue, id_or_type)
        if id is not None:
            return await queue.why(id)
        return await observe.why_type(queue.store, id_or_type)

    answer = run_on_queue(dsn, work)
    if as_json:
        output.show_json(answer)
    else:
        output.show(clean(answer.sentence))
    exit_with(ExitCode.FAILED if answer.needs_a_person else ExitCode.OK)


async def _job_id(queue: Queue, text: str) -> UUID | None:
    """Parse an id, or a part of one as lists show it; None if the text names a type."""
    try:
        return UUID(text)
    except ValueError:
        matches = await short_id.find(queue.store, text)
    if matches is None or not (matches.ids or matches.marked):  # hex digits may name a type
        return None
    return short_id.only(matches, text)
