"""howdah pause: stop the claiming of job types."""

from __future__ import annotations

import click

from howdah import Queue, observe
from howdah.cli import formatting, output
from howdah.cli.options import dsn_option, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.observe import Paused
from howdah.text.printable import one_line


@click.command()
@click.argument("types", metavar="[TYPE]...", nargs=-1)
@click.option(
    "--reason", metavar="TEXT", help="Shown by `howdah why`, the lists and the dashboard."
)
@json_option
@dsn_option
def pause(types: tuple[str, ...], reason: str | None, as_json: bool, dsn: str | None) -> None:
    """Pause job types, or list the paused types.

    No worker claims jobs of a paused type, not even a foreign one. Running jobs go on to their end;
    new jobs wait. Pausing a paused type changes nothing.
    """
    if reason is not None and not types:
        raise click.UsageError("--reason needs the types to pause: name them")

    async def work(queue: Queue) -> tuple[dict[str, bool], dict[str, Paused]]:
        newly_paused = {job_type: await queue.pause(job_type, reason) for job_type in types}
        return newly_paused, await observe.paused(queue.store)

    newly_paused, paused = run_on_queue(dsn, work)
    if as_json:
        output.show_json(list(paused.values()))
        return
    for job_type, changed in newly_paused.items():
        output.show(f"{one_line(job_type)} {'' if changed else 'was already '}paused")
    if types:
        return
    if not paused:
        output.note("no type is paused")
        return
    table = output.table("TYPE", "SINCE", "BY", "REASON")
    for entry in paused.values():
        table.add_row(
            one_line(entry.job_type),
            formatting.ago(entry.paused_at),
            one_line(entry.paused_by),
            one_line(entry.reason or ""),
        )
    output.show(table)
