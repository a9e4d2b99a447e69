"""howdah signal: send a signal to a job that waits for it, or will."""

from __future__ import annotations

import sys
from typing import Any
from uuid import UUID

import click
import msgspec

from howdah import Queue
from howdah.cli import output
from howdah.cli.options import dsn_option, job_id, json_option
from howdah.cli.run_on_queue import run_on_queue


@click.command()
@click.argument("id", metavar="ID", type=job_id)
@click.argument("name", metavar="NAME")
@click.argument("data", metavar="[DATA]", required=False)
@json_option
@dsn_option
def signal(id: UUID, name: str, data: str | None, as_json: bool, dsn: str | None) -> None:
    """Send a signal to a job that waits for it, or will.

    DATA is what `ctx.wait_for` returns: JSON, or - to read it from stdin; null if it is left out. A
    signal that the job does not wait for yet is kept for it. Exit code 1 if the job has ended, 3 if
    it does not exist.
    """
    value = _json(data)

    async def work(queue: Queue) -> bool:
        return await queue.signal(id, name, value)

    waited = run_on_queue(dsn, work)
    if as_json:
        output.show_json({"id": id, "waited": waited})
    else:
        output.show(f"{id} {'goes on' if waited else 'does not wait for it yet: it is kept'}")


def _json(data: str | None) -> Any:
    if data is None:
        return None
    try:
        return msgspec.json.decode(sys.stdin.read() if data == "-" else data)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise click.BadParameter(
            f"it is not valid JSON: {error}. Text needs double quotes: '\"yes\"'",
            param_hint="DATA",
        ) from None
