"""howdah enqueue: enqueue one job by the name of its type."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import get_args

import click

from howdah import Queue
from howdah import enqueue as enqueueing
from howdah.cli import options, output
from howdah.cli.exit_codes import ExitCode, exit_with
from howdah.cli.options import dsn_option, json_option
from howdah.cli.payload import check_payload, read_payload
from howdah.cli.run_on_queue import run_on_queue
from howdah.job import Job, OnConflict, Until
from howdah.states import State


@click.command()
@click.argument("job_type", metavar="TYPE")
@click.argument("arguments", metavar="[KEY=VALUE]...", nargs=-1)
@click.option(
    "--data", metavar="JSON", help="The payload as a JSON object, or - to read it from stdin."
)
@click.option(
    "--priority",
    type=options.priority,
    metavar="N|NAME",
    help="A whole number, explicit (150), discovered (100) or backfill (30).  "
    "[default: that of the type, else 100]",
)
@click.option(
    "--delay",
    type=options.duration,
    metavar="DURATION",
    help="Run it after this time at the earliest: 10s, 5m, 2d.",
)
@click.option(
    "--run-at",
    type=options.instant,
    metavar="INSTANT",
    help="Run it at this time at the earliest: 2030-01-31T18:00:00Z.",
)
@click.option(
    "--max-attempts", type=int, help="How often to try it.  [default: that of the type, else 3]"
)
@click.option(
    "--expires",
    type=options.duration,
    metavar="DURATION",
    help="Cancel it if it has not started so long after it is due.  [default: that of the type]",
)
@click.option(
    "--expires-at",
    type=options.instant,
    metavar="INSTANT",
    help="Cancel it if it has not started by this time.",
)
@click.option(
    "--unique-key",
    metavar="KEY",
    help="Enqueue it only if no job of the type has this key; print the id of that job else.",
)
@click.option(
    "--unique-until",
    type=click.Choice(get_args(Until)),
    help="How long the job has its key.  [default: ended]",
)
@click.option(
    "--unique-for", type=options.duration, metavar="DURATION", help="The same, as a time from now."
)
@click.option(
    "--on-conflict",
    type=click.Choice(get_args(OnConflict)),
    help="What to do with the job that has the key.  [default: existing: nothing]",
)
@click.option(
    "--key",
    metavar="KEY",
    help="What it must not run at the same time with: jobs of its type with the same key.",
)
@click.option("--force", is_flag=True, help="Enqueue it although no worker can read the payload.")
@click.option("--wait", is_flag=True, help="Wait until it has ended and print its result.")
@json_option
@dsn_option
def enqueue(
    job_type: str,
    arguments: tuple[str, ...],
    data: str | None,
    priority: int | None,
    delay: timedelta | None,
    run_at: datetime | None,
    max_attempts: int | None,
    expires: timedelta | None,
    expires_at: datetime | None,
    unique_key: str | None,
    unique_until: Until | None,
    unique_for: timedelta | None,
    on_conflict: OnConflict | None,
    key: str | None,
    force: bool,
    wait: bool,
    as_json: bool,
    dsn: str | None,
) -> None:
    """Enqueue one job and print its id.

    A VALUE is JSON if it can be parsed as JSON, else text:

    \b
        howdah enqueue resize path=a.png width=320
        howdah enqueue resize --data '{"path": "a.png", "width": 320}'

    KEY=VALUE overrides --data. The names of the arguments are compared with what the workers of
    the type have registered. The worker checks the values. With --wait, the exit code is 0 if the
    job completed, else 1.
    """  # noqa: D301 - \b keeps click from rewrapping
    payload = read_payload(data, arguments)

    async def work(queue: Queue) -> Job | None:
        draft = queue.draft(
            job_type,
            payload,
            priority=priority,
            delay=delay,
            run_at=run_at,
            max_attempts=max_attempts,
            expires=expires,
            expires_at=expires_at,
            unique=None if unique_key is None else lambda _: unique_key,
            unique_until=unique_until,
            unique_for=unique_for,
            on_conflict=on_conflict,
            key=key,
        )
        warning = await check_payload(queue, job_type, payload, force)
        id = await enqueueing.enqueue(queue.store, draft)
        if warning is not None:
            output.warning(warning)
        handle = queue.handle(id)
        if id != draft.id:
            output.note("the job existed: it has the unique key")
        if not as_json:
            output.show(str(handle.id))
        elif not wait:
            existed = {"existed": id != draft.id} if unique_key is not None else {}
            output.show_json({"id": id, **existed})
        if not wait:
            return None
        async for _ in handle.events():
            pass
        return await handle.job()

    job = run_on_queue(dsn, work)
    if job is None:
        return
    if as_json:
        output.show_json(job)
    elif job.status is State.COMPLETED:
        output.show_json(job.result)
    else:
        output.error(f"the job is {job.status}: {job.last_error}")
    exit_with(ExitCode.OK if job.status is State.COMPLETED else ExitCode.FAILED)
