"""Job types: what workers have registered about a type, for callers without its function.

In SQL  sql/20_tables/job_types.sql

Workers write the rows. Their content is untrusted: parameters in an unknown format count as not
registered.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from howdah.errors import HowdahError
from howdah.safe_logging import log_named
from howdah.signature import Parameter
from howdah.store import Store

_log = log_named("howdah.enqueue")

LIVE = timedelta(minutes=3)  # a worker registers its types again once a minute
MOST_NAMES = 10_000  # that are compared with a misspelt name
NO_SIGNATURE = "-"  # of a type whose worker did not register its parameters

_BY_NAME = """
    select priority, max_attempts, queue, expires, parameters, signature, label, last_seen_at,
           last_seen_at >= howdah.clock() - $2::interval
    from howdah.job_types where name = $1
"""
_NAMES = "select name from howdah.job_types order by last_seen_at desc limit $1"


class RegisteredType(msgspec.Struct, frozen=True, kw_only=True):
    """What workers have registered about one job type."""

    name: str
    priority: int
    max_attempts: int
    queue: str
    expires: timedelta | None
    parameters: list[Parameter] | None  # None: not registered
    label: str | None
    last_seen_at: datetime
    live: bool  # whether a worker registered it within the last minutes


async def registered_type(store: Store, name: str) -> RegisteredType | None:
    """Return what workers have registered about a type; None if no worker ever did."""
    rows = await store.fetch(_BY_NAME, name, LIVE)
    if not rows:
        return None
    priority, max_attempts, queue, expires, parameters, signature, label, last_seen_at, live = rows[
        0
    ]
    return RegisteredType(
        name=name,
        priority=priority,
        max_attempts=max_attempts,
        queue=queue,
        expires=expires,
        parameters=None if signature == NO_SIGNATURE else _parameters(parameters),
        label=label,
        last_seen_at=last_seen_at,
        live=live,
    )


def _parameters(text: str) -> list[Parameter] | None:
    try:
        return msgspec.json.decode(text, type=list[Parameter])
    except (msgspec.MsgspecError, UnicodeError):
        return None


async def unregistered(store: Store, name: str) -> str | None:
    """Say that no worker ever registered a type, with similar names; None if one did."""
    names = [row[0] for row in await store.fetch(_NAMES, MOST_NAMES)]
    if name in names:
        return None
    similar = [repr(match) for match in difflib.get_close_matches(name, names, n=3)]
    hint = f" (did you mean {' or '.join(similar)}?)" if similar else ""
    return f"no worker has ever registered {name!r}{hint}"


async def warn_unregistered(store: Store, name: str) -> None:
    """Log that no worker ever registered a type; an error here does not fail the enqueue."""
    try:
        warning = await unregistered(store, name)
    except HowdahError:
        return
    if warning is not None:
        _log.warning("enqueue.unregistered type=%s: %s", name, warning)


def misfits(parameters: list[Parameter], data: Mapping[str, object]) -> list[str]:
    """List what is missing or unknown in a payload for these parameters; empty: it may fit."""
    names = [parameter.name for parameter in parameters]
    wrong = [
        f"missing {parameter.name!r}{f' ({parameter.type})' if parameter.type else ''}"
        for parameter in parameters
        if parameter.required and parameter.name not in data
    ]
    for name in data:
        if name not in names:
            similar = difflib.get_close_matches(name, names, n=1)
            hint = f" (did you mean {similar[0]!r}?)" if similar else ""
            wrong.append(f"unknown {name!r}{hint}")
    return wrong
