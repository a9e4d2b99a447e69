"""Options: what people type, turned into values, and the options many commands share.

Comes before  every command

Whatever does not fit is told by click, with the usage and exit code 2, before anything is done.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import click

from howdah.checks.durations import parse_length
from howdah.job import Priority
from howdah.observe.short_id import LEAST, part_of_id

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def duration(value: str) -> timedelta:
    """Read a length of time: 500ms, 30s, 5m, 1h30m, 2d."""
    try:
        length = parse_length(value)
    except OverflowError:
        raise click.BadParameter(f"{value!r} is longer than a duration can be.") from None
    if length is None:
        raise click.BadParameter(
            f"{value!r} is not a duration: write a number and a unit, "
            "such as 500ms, 30s, 5m, 1h or 2d."
        )
    return length


def job_id(value: str) -> UUID:
    """Read the id of a job, which is written in full."""
    try:
        return UUID(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a job id: an id is a whole uuid, as `howdah jobs` lists them."
        ) from None


def part_of_job_id(value: str) -> str:
    """Read the id of a job, or a part of it as lists show it."""
    try:
        return str(UUID(value))
    except ValueError:
        if part_of_id(value) is None:
            raise click.BadParameter(
                f"{value!r} is not a job id: write a whole uuid, as `howdah jobs` lists them, or "
                f"{LEAST} or more digits of its beginning or its end."
            ) from None
    return value


def priority(value: str) -> int:
    """Read a priority: a whole number, or one of the three names."""
    named = {priority.name.lower(): int(priority) for priority in Priority}
    if value.lower() in named:
        return named[value.lower()]
    try:
        return int(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is neither a whole number nor one of {', '.join(named)}."
        ) from None


def instant(value: str) -> datetime:
    """Read a moment with its time zone, as ISO 8601 writes it."""
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not an instant: write it as 2030-01-31T18:00:00Z."
        ) from None
    if at.utcoffset() is None:
        raise click.BadParameter(
            f"{value!r} has no time zone, so nobody can know when that is: "
            "add Z or an offset such as +02:00."
        )
    return at


def _own_or_groups(ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    return value or ctx.find_root().params.get("dsn")


DSN_HELP = "Which database. [default: HOWDAH_DSN, DATABASE_URL, or the embedded PostgreSQL]"


def dsn_option(command: Decorated) -> Decorated:
    """Give a command `--dsn`; it may stand before the command as well."""
    return click.option("--dsn", metavar="DSN", callback=_own_or_groups, help=DSN_HELP)(command)


def json_option(command: Decorated) -> Decorated:
    """Give a command `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(command)


def port_option(command: Decorated) -> Decorated:
    """Give a command `--port`, where it serves the dashboard."""
    return click.option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="N",
        default=8420,
        show_default=True,
        help="The port of the dashboard; 0 takes a free one.",
    )(command)
