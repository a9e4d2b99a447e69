"""howdah metrics: print the metrics of the queue for Prometheus."""

from __future__ import annotations

from datetime import timedelta

import click

from howdah import Queue
from howdah.cli import output
from howdah.cli.options import dsn_option, duration
from howdah.cli.run_on_queue import run_on_queue
from howdah.metrics.prometheus import prometheus
from howdah.text.printable import clean


@click.command()
@click.option(
    "--within",
    type=duration,
    metavar="DURATION",
    default="2s",
    show_default=True,
    help="How long one part may take; a part that takes longer is left out.",
)
@dsn_option
def metrics(within: timedelta, dsn: str | None) -> None:
    """Print metrics in the text format of Prometheus.

    For a textfile collector. `howdah web` serves the same at /metrics.
    """

    async def work(queue: Queue) -> str:
        return await prometheus(queue.store, within=within)

    text = run_on_queue(dsn, work)
    # the format cannot escape control characters: clean them on terminals only
    click.echo(clean(text) if output.on_terminal() else text, nl=False)
