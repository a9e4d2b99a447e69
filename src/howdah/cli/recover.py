"""howdah recover: take jobs from workers that fell silent."""

from __future__ import annotations

from datetime import timedelta

import click

from howdah import Queue
from howdah.cli import ground, words
from howdah.cli.options import dsn_option, duration, json_option
from howdah.store.upkeep import Recovered
from howdah.text.printable import one_line


@click.command()
@click.option(
    "--timeout",
    type=duration,
    metavar="DURATION",
    default="5m",
    show_default=True,
    help="For foreign workers that never beat: how long they may hold a job.",
)
@json_option
@dsn_option
def recover(timeout: timedelta, as_json: bool, dsn: str | None) -> None:
    """Take jobs from workers that fell silent.

    Running workers do this by themselves every second; this is for when none is running. A job
    with attempts left goes back in line, a job on its last attempt ends as failed.
    """

    async def work(queue: Queue) -> list[Recovered]:
        return await queue.recover_stale_jobs(timeout)

    recovered = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json([one._asdict() for one in recovered])
        return
    if recovered:
        table = ground.table("ID", "NOW", "TAKEN FROM")
        for one in recovered:
            table.add_row(str(one.id), words.status(one.status), one_line(one.worker_id))
        ground.show(table)
    ground.remark(f"{words.jobs(len(recovered))} recovered")
