"""Options: the options that commands share, and how their values are parsed.

A value that does not fit is reported by click, with the usage and exit code 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import click

from howdah.checks.durations import parse_length
from howdah.job import Priority
from howdah.observe.short_id import LEAST, part_of_id

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def duration(value: str) -> timedelta:
    """Parse a duration: 500ms, 30s, 5m, 1h30m, 2d."""
    try:
        length = parse_length(value)
    except OverflowError:
        raise click.BadParameter(f"{value!r} is too long: write a shorter duration.") from None
    if length is None:
        raise click.BadParameter(
            f"{value!r} is not a duration: write a number and a unit, "
            "such as 500ms, 30s, 5m, 1h or 2d."
        )
    return length


def job_id(value: str) -> UUID:
    """Parse the full id of a job."""
    try:
        return UUID(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a job id: write a full uuid, as `howdah jobs` lists them."
        ) from None


def part_of_job_id(value: str) -> str:
    """Parse the id of a job, or a part of it as lists show it."""
    try:
        return str(UUID(value))
    except ValueError:
        if part_of_id(value) is None:
            raise click.BadParameter(
                f"{value!r} is not a job id: write a full uuid, as `howdah jobs` lists them, or "
                f"{LEAST} or more digits of its beginning or its end."
            ) from None
    return value


def names_in(value: str) -> list[str]:
    """Split a list of names that is written with commas."""
    return [name.strip() for name in value.split(",")]


def queue_names(given: Sequence[str]) -> list[str]:
    """Return the names of all `--queue` options."""
    return [name for value in given for name in names_in(value)]


def queue_option(text: str) -> Callable[[Decorated], Decorated]:
    """Add `--queue` to a command: names with commas, or the option repeated."""
    return click.option("--queue", "queues", metavar="A,B", multiple=True, help=text)


def priority(value: str) -> int:
    """Parse a priority: a whole number, or one of the three names."""
    named = {priority.name.lower(): int(priority) for priority in Priority}
    if value.lower() in named:
        return named[value.lower()]
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a priority: write a whole number or one of {', '.join(named)}."
        ) from None


def instant(value: str) -> datetime:
    """Parse an instant with its time zone, in ISO 8601."""
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not an instant: write it as 2030-01-31T18:00:00Z."
        ) from None
    if at.utcoffset() is None:
        raise click.BadParameter(f"{value!r} has no time zone: add Z or an offset such as +02:00.")
    return at


def _own_or_group_value(
    ctx: click.Context, _param: click.Parameter, value: str | None
) -> str | None:
    return value or ctx.find_root().params.get("dsn")


DSN_HELP = "The database. [default: HOWDAH_DSN, DATABASE_URL, or the embedded PostgreSQL]"


def dsn_option(command: Decorated) -> Decorated:
    """Add `--dsn` to a command; it may also be written before the command."""
    return click.option("--dsn", metavar="DSN", callback=_own_or_group_value, help=DSN_HELP)(
        command
    )


def json_option(command: Decorated) -> Decorated:
    """Add `--json` to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def port_option(command: Decorated) -> Decorated:
    """Add `--port`, the port of the dashboard, to a command."""
    return click.option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="N",
        default=8420,
        show_default=True,
        help="The port of the dashboard; 0 chooses a free one.",
    )(command)
