"""Job types: what workers have registered, for those who enqueue without the function.

In SQL  sql/20_tables/job_types.sql

The rows are written by workers and read here by name. Their words are shown as text and never
trusted: parameters that do not look like parameters are as if there were none.
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

LIVE = timedelta(minutes=3)  # a worker says once a minute that it knows its types
MOST_NAMES = 10_000  # that are looked at for a near miss
UNSAID = "-"  # the signature of a type whose worker did not tell its parameters

_ONE = """
    select priority, max_attempts, parameters, signature, label, last_seen_at,
           last_seen_at >= howdah.clock() - $2::interval
    from howdah.job_types where name = $1
"""
_NAMES = "select name from howdah.job_types order by last_seen_at desc limit $1"


class RegisteredType(msgspec.Struct, frozen=True, kw_only=True):
    """What workers have told of one job type."""

    name: str
    priority: int
    max_attempts: int
    parameters: list[Parameter] | None  # None: not told
    label: str | None
    last_seen_at: datetime
    live: bool  # whether a worker that knows it was heard of just now


async def registered_type(store: Store, name: str) -> RegisteredType | None:
    """Return what workers have told of a type; None where none ever did."""
    rows = await store.fetch(_ONE, name, LIVE)
    if not rows:
        return None
    priority, max_attempts, parameters, signature, label, last_seen_at, live = rows[0]
    return RegisteredType(
        name=name,
        priority=priority,
        max_attempts=max_attempts,
        parameters=None if signature == UNSAID else _parameters(parameters),
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
    """Say that no worker ever registered a type, and which names are near; None: one did."""
    names = [row[0] for row in await store.fetch(_NAMES, MOST_NAMES)]
    if name in names:
        return None
    near = difflib.get_close_matches(name, names, n=3)
    meant = " or ".join(repr(one) for one in near)
    return f"no worker has ever registered {name!r}" + (f" (did you mean {meant}?)" if near else "")


async def warn_unregistered(store: Store, name: str) -> None:
    """Log that no worker ever registered a type; what goes wrong here hurts no enqueue."""
    try:
        said = await unregistered(store, name)
    except HowdahError:
        return
    if said is not None:
        _log.warning("enqueue.unregistered type=%s: %s", name, said)


def misfits(parameters: list[Parameter], data: Mapping[str, object]) -> list[str]:
    """Say in what a payload cannot fit a function with these parameters; empty: it may fit."""
    names = [one.name for one in parameters]
    said = [
        f"missing {one.name!r}{f' ({one.type})' if one.type else ''}"
        for one in parameters
        if one.required and one.name not in data
    ]
    for name in data:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            said.append(f"unknown {name!r}{meant}")
    return said
