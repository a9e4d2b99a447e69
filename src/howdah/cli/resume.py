"""howdah resume: let jobs of a paused type be claimed again."""

from __future__ import annotations

import click

from howdah import Queue
from howdah.cli import ground
from howdah.cli.options import dsn_option, json_option
from howdah.text.printable import one_line


@click.command()
@click.argument("types", metavar="TYPE...", nargs=-1, required=True)
@json_option
@dsn_option
def resume(types: tuple[str, ...], as_json: bool, dsn: str | None) -> None:
    """Resume paused job types.

    Idle workers are woken at once. Exit code 1 when one of the types was not paused.
    """

    async def work(queue: Queue) -> dict[str, bool]:
        return {job_type: await queue.resume(job_type) for job_type in types}

    done = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json({"resumed": [t for t, changed in done.items() if changed]})
    else:
        for job_type, changed in done.items():
            if changed:
                ground.show(f"{one_line(job_type)} resumed")
            else:
                ground.complain(f"{one_line(job_type)} was not paused")
    ground.leave(ground.Exit.OK if all(done.values()) else ground.Exit.FAILED)
