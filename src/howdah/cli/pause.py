"""howdah pause: let nobody claim jobs of a type for a while."""

from __future__ import annotations

import click

from howdah import Queue, observe
from howdah.cli import ground, words
from howdah.cli.options import dsn_option, json_option
from howdah.observe import Paused
from howdah.text.printable import one_line


@click.command()
@click.argument("types", metavar="[TYPE]...", nargs=-1)
@click.option("--reason", metavar="TEXT", help="Shown to whoever wonders why nothing runs.")
@json_option
@dsn_option
def pause(types: tuple[str, ...], reason: str | None, as_json: bool, dsn: str | None) -> None:
    """Pause job types, or list those that are paused.

    No worker claims a job of a paused type, of whatever make it is. Jobs at work go on to their
    end, and new ones wait. Pausing what is paused already changes nothing.
    """
    if reason is not None and not types:
        raise click.UsageError("name the types to pause")

    async def work(queue: Queue) -> tuple[dict[str, bool], dict[str, Paused]]:
        done = {job_type: await queue.pause(job_type, reason) for job_type in types}
        return done, await observe.paused(queue.store)

    done, paused = ground.on_queue(dsn, work)
    if as_json:
        ground.show_json(list(paused.values()))
        return
    for job_type, changed in done.items():
        ground.show(f"{one_line(job_type)} {'' if changed else 'was '}paused")
    if types:
        return
    if not paused:
        ground.remark("nothing is paused")
        return
    table = ground.table("TYPE", "SINCE", "BY", "REASON")
    for one in paused.values():
        table.add_row(
            one_line(one.job_type),
            words.ago(one.paused_at),
            one_line(one.paused_by),
            one_line(one.reason or ""),
        )
    ground.show(table)
