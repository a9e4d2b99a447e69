"""howdah resume: resume paused job types."""

from __future__ import annotations

import click

from howdah import Queue
from howdah.cli import output
from howdah.cli.exit_codes import ExitCode, exit_with
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.text.printable import one_line


@click.command()
@click.argument("types", metavar="TYPE...", nargs=-1, required=True)
@json_option
@dsn_option
def resume(types: tuple[str, ...], as_json: bool, dsn: str | None) -> None:
    """Resume paused job types.

    Idle workers start on their jobs at once. Exit code 1 if a type was not paused.
    """

    async def work(queue: Queue) -> dict[str, bool]:
        return {job_type: await queue.resume(job_type) for job_type in types}

    resumed = run_on_queue(dsn, work)
    if as_json:
        output.show_json({"resumed": [t for t, changed in resumed.items() if changed]})
    else:
        for job_type, changed in resumed.items():
            if changed:
                output.show(f"{one_line(job_type)} resumed")
            else:
                output.error(
                    f"{one_line(job_type)} was not paused: `howdah pause` lists the paused types"
                )
    exit_with(ExitCode.OK if all(resumed.values()) else ExitCode.FAILED)
