"""howdah enqueue: hand one job over by the name of its type."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import click
import msgspec

from howdah import Queue
from howdah import enqueue as room
from howdah.cli import ground, options
from howdah.cli.ground import Exit
from howdah.cli.options import dsn_option, json_option
from howdah.errors import BadInput
from howdah.job import Job
from howdah.observe import misfits, registered_type, unregistered
from howdah.states import State


@click.command()
@click.argument("job_type", metavar="TYPE")
@click.argument("arguments", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--data", metavar="JSON", help="The payload as a JSON object; - reads it from stdin.")
@click.option(
    "--priority",
    type=options.priority,
    metavar="N|NAME",
    help="A whole number, explicit (150), discovered (100) or backfill (30).  "
    "[default: as its workers say, else 100]",
)
@click.option(
    "--delay",
    type=options.duration,
    metavar="DURATION",
    help="Not before this long from now: 10s, 5m, 2d.",
)
@click.option(
    "--run-at", type=options.instant, metavar="INSTANT", help="Not before: 2030-01-31T18:00:00Z."
)
@click.option(
    "--max-attempts", type=int, help="How often to try.  [default: as its workers say, else 3]"
)
@click.option("--force", is_flag=True, help="Hand it over although its workers could not read it.")
@click.option("--wait", is_flag=True, help="Wait for its end and print the result.")
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
    force: bool,
    wait: bool,
    as_json: bool,
    dsn: str | None,
) -> None:
    """Hand one job over and print its id.

    A VALUE is JSON if it can be read as JSON, else text:

    \b
        howdah enqueue resize path=a.png width=320
        howdah enqueue resize --data '{"path": "a.png", "width": 320}'

    KEY=VALUE comes on top of --data. The names of the arguments are compared with what the workers
    of the type have registered; the values are checked by the worker, which knows the function.
    With --wait, the exit code is 0 for a completed job and 1 for any other end.
    """  # noqa: D301 - \b keeps click from rewrapping
    payload = _payload(data, arguments)

    async def work(queue: Queue) -> Job | None:
        made = queue.draft(
            job_type,
            payload,
            priority=priority,
            delay=delay,
            run_at=run_at,
            max_attempts=max_attempts,
        )
        warning = await _check(queue, job_type, payload, force)
        await room.enqueue(queue.store, made)
        if warning is not None:
            ground.warn(warning)
        handle = queue.handle(made.id)
        if not as_json:
            ground.show(str(handle.id))
        elif not wait:
            ground.show_json({"id": handle.id})
        if not wait:
            return None
        async for _ in handle.events():
            pass
        return await handle.job()

    job = ground.on_queue(dsn, work)
    if job is None:
        return
    if as_json:
        ground.show_json(job)
    elif job.status is State.COMPLETED:
        ground.show_json(job.result)
    else:
        ground.complain(f"the job is {job.status}: {job.last_error}")
    ground.leave(Exit.OK if job.status is State.COMPLETED else Exit.FAILED)


async def _check(queue: Queue, job_type: str, payload: dict[str, Any], force: bool) -> str | None:
    """Compare a payload with what workers have registered; refuse what no live one can read.

    Returns what to warn of once the job is handed over.
    """
    known = await registered_type(queue.store, job_type)
    if known is None:
        unknown = await unregistered(queue.store, job_type)
        return None if unknown is None else f"{unknown}. The job waits until one does."
    if known.parameters is None or not (said := misfits(known.parameters, payload)):
        return None
    problem = f"the payload does not fit {job_type}: {'; '.join(said)}"
    if known.live and not force:
        raise BadInput(f"{problem}. With --force it is handed over all the same.")
    return f"{problem}. The job waits for a worker that can read it."


def _payload(data: str | None, arguments: Sequence[str]) -> dict[str, Any]:
    payload: dict[str, Any] = {}
    if data is not None:
        raw = sys.stdin.read() if data == "-" else data
        try:
            found = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise click.BadParameter(f"this is not JSON: {error}", param_hint="--data") from None
        if not isinstance(found, dict):
            raise click.BadParameter(
                'a payload is a JSON object: {"key": "value"}', param_hint="--data"
            )
        payload.update(cast("dict[str, Any]", found))
    seen: set[str] = set()
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{argument!r} is not KEY=VALUE", param_hint="KEY=VALUE")
        if key in seen:
            raise click.BadParameter(f"{key!r} is given twice", param_hint="KEY=VALUE")
        seen.add(key)
        payload[key] = _value(value)
    return payload


def _value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return text
