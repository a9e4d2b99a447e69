"""Admit: the calls that change the rules of keys and limits.

In SQL  sql/35_admit/

observe/limits.py reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import msgspec

from howdah.admit import KeyRule, Limit, Rate, named_limit
from howdah.checks.limit_names import unknown_limit
from howdah.store.store import Store


async def register_limits(
    store: Store,
    worker_id: str,
    types: Sequence[dict[str, object]],
    limits: Sequence[dict[str, object]],
) -> list[tuple[str, str, str | None]]:
    """Register the rules in a worker's code; returns kind, name and rule of what has changed."""
    rows = await store.fetch(
        "select kind, name, rule from howdah.async_commit(), howdah.register_limits($1, $2, $3)",
        worker_id,
        msgspec.json.encode(types).decode(),
        msgspec.json.encode(limits).decode(),
    )
    return [(row[0], row[1], row[2]) for row in rows]


class Admitted(NamedTuple):
    """What a look at the keys and limits has done."""

    jobs: int  # that joined the line
    next_look: timedelta | None  # when to look again; None: when somebody asks for it


async def admit(store: Store) -> Admitted | None:
    """Let in the jobs that wait for a slot that is free; None: another session does that now."""
    rows = await store.fetch(
        "select admitted, next_look from howdah.async_commit(), howdah.admit()"
    )
    return Admitted(*rows[0]) if rows else None


async def set_limit(store: Store, limit: Limit, by: str | None = None) -> None:
    """Make or change a named limit."""
    rate = limit.rate
    await store.fetchval(
        "select howdah.set_limit($1, $2, $3, $4, $5, $6, $7)",
        limit.name,
        limit.at_once,
        None if rate is None else rate.count,
        timedelta(seconds=1) if rate is None else rate.per,
        None if rate is None else rate.burst,
        limit.per_key,
        by,
    )


class Kept:
    """Stands for a value that stays as it is."""


KEPT = Kept()


async def change_limit(
    store: Store,
    name: str,
    at_once: int | Kept | None = KEPT,
    rate: Rate | Kept | None = KEPT,
    per_key: bool | Kept = KEPT,
    by: str | None = None,
) -> Limit:
    """Change some values of a named limit, or make it; raises UnknownLimit if nothing limits it."""
    rows = await store.fetch("select * from howdah.limits where name = $1", name)
    if rows:
        row: Any = rows[0]
        count, per, burst = row["rate"], row["per"], row["burst"]
        rated = None if count is None else Rate(count, per=per, burst=burst)
        before = (row["at_once"], rated, row["per_key"])
    elif at_once in (None, KEPT) and rate in (None, KEPT):
        raise unknown_limit(name, await limit_names(store))
    else:
        before = (None, None, False)
    limit = named_limit(
        name,
        before[0] if isinstance(at_once, Kept) else at_once,
        before[1] if isinstance(rate, Kept) else rate,
        before[2] if isinstance(per_key, Kept) else per_key,
    )
    await set_limit(store, limit, by)
    return limit


async def remove_limit(store: Store, name: str) -> bool:
    """Remove a named limit; returns False if there is none."""
    return await store.fetchval("select howdah.remove_limit($1)", name)


async def limit_names(store: Store) -> list[str]:
    """Return the names of all limits."""
    return [row[0] for row in await store.fetch("select name from howdah.limits order by name")]


async def set_type_limit(store: Store, job_type: str, rule: KeyRule, by: str | None = None) -> None:
    """Set the rule of a job type; raises UnknownLimit if it names a limit that does not exist."""
    if rule.limit is not None and rule.limit not in (known := await limit_names(store)):
        raise unknown_limit(rule.limit, known)
    await store.fetchval(
        "select howdah.set_type_limit($1, $2, $3, $4, $5, p_fair => $6)",
        *(job_type, rule.at_once, rule.ordered, rule.limit, by, rule.fair),
    )


async def clear_type_limit(store: Store, job_type: str) -> bool:
    """Remove the rule of a job type; returns False if it has none."""
    return await store.fetchval("select howdah.clear_type_limit($1)", job_type)
