"""howdah recover: take jobs back from silent workers."""

from __future__ import annotations

from datetime import timedelta

import click

from howdah import Queue
from howdah.cli import formatting, output
from howdah.cli.options import dsn_option, duration, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.store.upkeep import Recovered
from howdah.text.printable import one_line


@click.command()
@click.option(
    "--timeout",
    type=duration,
    metavar="DURATION",
    default="5m",
    show_default=True,
    help="How long a foreign worker, which sends no beats, may hold a job.",
)
@json_option
@dsn_option
def recover(timeout: timedelta, as_json: bool, dsn: str | None) -> None:
    """Take jobs back from workers that went silent.

    Running workers do this every second; use this if none is running. A job with attempts left
    waits for a worker again. A job on its last attempt fails.
    """

    async def work(queue: Queue) -> list[Recovered]:
        return await queue.recover_stale_jobs(timeout)

    recovered = run_on_queue(dsn, work)
    if as_json:
        output.show_json([job._asdict() for job in recovered])
        return
    if recovered:
        table = output.table("ID", "NOW", "TAKEN FROM")
        for job in recovered:
            table.add_row(str(job.id), formatting.status(job.status), one_line(job.worker_id))
        output.show(table)
    output.note(f"{formatting.jobs(len(recovered))} recovered")
