"""howdah metrics: the queue as Prometheus scrapes it."""

from __future__ import annotations

from datetime import timedelta

import click

from howdah import Queue
from howdah.cli import ground
from howdah.cli.options import dsn_option, duration
from howdah.metrics.prometheus import prometheus
from howdah.text.printable import clean


@click.command()
@click.option(
    "--within",
    type=duration,
    metavar="DURATION",
    default="2s",
    show_default=True,
    help="How long the database may take for one part; a part that takes longer is left out.",
)
@dsn_option
def metrics(within: timedelta, dsn: str | None) -> None:
    """Print metrics in the text format of Prometheus.

    For a textfile collector, or to see what `howdah web` serves at /metrics.
    """

    async def work(queue: Queue) -> str:
        return await prometheus(queue.store, within=within)

    found = ground.on_queue(dsn, work)
    # the format has no escapes for what steers a terminal: exact for programs, clean for people
    click.echo(clean(found) if ground.on_terminal() else found, nl=False)
