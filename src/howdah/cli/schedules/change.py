"""howdah schedules set, pause, resume, remove, run-now: change one schedule."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, get_args

import click

from howdah import Queue
from howdah.checks.schedule_names import check_schedule_name, unknown_schedule
from howdah.cli import options, output
from howdah.cli.options import dsn_option, json_option
from howdah.cli.payload import check_payload, read_payload
from howdah.cli.run_on_queue import run_on_queue
from howdah.cli.schedules.table import show_schedules
from howdah.observe import Schedule
from howdah.store.schedules import schedule_names
from howdah.text.printable import one_line
from howdah.timing import Missed, Overlap


@click.command("set")
@click.argument("name", metavar="NAME")
@click.argument("job_type", metavar="TYPE")
@click.argument("arguments", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--cron", metavar="EXPRESSION", help="When it fires, such as '0 3 * * *'.")
@click.option(
    "--every", type=options.duration, metavar="DURATION", help="The time between two firings."
)
@click.option(
    "--tz", metavar="NAME", default="UTC", help="The time zone of --cron.  [default: UTC]"
)
@click.option(
    "--missed",
    type=click.Choice(get_args(Missed)),
    default="last",
    help="What becomes of firings that no worker could do within a minute.  [default: last]",
)
@click.option(
    "--overlap",
    type=click.Choice(get_args(Overlap)),
    default="allow",
    help="skip: not while the job of the firing before has not ended.  [default: allow]",
)
@click.option("--data", metavar="JSON", help="The payload as a JSON object, or - for stdin.")
@click.option("--priority", type=options.priority, metavar="N|NAME", help="Of its jobs.")
@click.option("--key", metavar="KEY", help="The concurrency key of its jobs.")
@click.option("--force", is_flag=True, help="Set it although no worker can read the payload.")
@json_option
@dsn_option
def set_schedule(
    name: str,
    job_type: str,
    arguments: tuple[str, ...],
    cron: str | None,
    every: timedelta | None,
    tz: str,
    missed: Missed,
    overlap: Overlap,
    data: str | None,
    priority: int | None,
    key: str | None,
    force: bool,
    as_json: bool,
    dsn: str | None,
) -> None:
    """Make a schedule, or change it as a whole.

    \b
        howdah schedules set nightly report day=today --cron '0 3 * * *' --tz Europe/Berlin
        howdah schedules set poll fetch --every 5m --overlap skip

    Each firing enqueues a job of TYPE with this payload, as `howdah enqueue` does. Code does not
    touch the schedule any more, also one that code has declared.
    """  # noqa: D301 - \b keeps click from rewrapping
    payload = read_payload(data, arguments)

    async def work(queue: Queue) -> Schedule:
        draft = queue.draft(job_type, payload, priority=priority, key=key)
        warning = await check_payload(queue, job_type, payload, force)
        made = await queue.schedules.set(
            name, draft, cron=cron, every=every, tz=tz, missed=missed, overlap=overlap
        )
        if warning is not None:
            output.warning(warning)
        return made

    made = run_on_queue(dsn, work)
    if as_json:
        output.show_json(made)
    else:
        show_schedules([made])


def _name_argument(command: Any) -> Any:
    return click.argument("name", metavar="NAME")(json_option(dsn_option(command)))


@click.command()
@_name_argument
def pause(name: str, as_json: bool, dsn: str | None) -> None:
    """Pause a schedule: it does not fire until somebody resumes it."""

    async def work(queue: Queue) -> bool:
        return await queue.schedules.pause(name)

    changed = run_on_queue(dsn, work)
    _report(name, "paused", "paused" if changed else "was already paused", changed, as_json)


@click.command()
@_name_argument
def resume(name: str, as_json: bool, dsn: str | None) -> None:
    """Resume a schedule: it fires again, from now on."""

    async def work(queue: Queue) -> bool:
        return await queue.schedules.resume(name)

    changed = run_on_queue(dsn, work)
    said = "resumed" if changed else "was not paused; its next firing is computed anew"
    _report(name, "resumed", said, changed, as_json)


@click.command()
@_name_argument
def remove(name: str, as_json: bool, dsn: str | None) -> None:
    """Remove a schedule; its jobs stay.

    One that code declares comes back when the next worker starts: pause it instead.
    """

    async def work(queue: Queue) -> bool:
        if not await queue.schedules.remove(name):
            raise unknown_schedule(check_schedule_name(name), await schedule_names(queue.store))
        return True

    _report(name, "removed", "removed", run_on_queue(dsn, work), as_json)


@click.command("run-now")
@_name_argument
def run_now(name: str, as_json: bool, dsn: str | None) -> None:
    """Enqueue a job of a schedule at once, and print its id; the next firing stays."""

    async def work(queue: Queue) -> Any:
        return (await queue.schedules.run_now(name)).id

    id = run_on_queue(dsn, work)
    if as_json:
        output.show_json({"id": id})
    else:
        output.show(str(id))


def _report(name: str, did: str, said: str, changed: bool, as_json: bool) -> None:
    if as_json:
        output.show_json({"name": name, did: changed})
    else:
        output.show(f"{one_line(name)} {said}")
