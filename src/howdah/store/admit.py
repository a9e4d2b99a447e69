"""Admit: the calls that read and change the rules of keys and limits.

In SQL  sql/35_admit/
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

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


async def set_limit(
    store: Store,
    name: str,
    at_once: int | None,
    rate: int | None,
    per: timedelta,
    burst: int | None,
    per_key: bool,
) -> None:
    """Make or change a named limit."""
    await store.fetchval(
        "select howdah.set_limit($1, $2, $3, $4, $5, $6)", name, at_once, rate, per, burst, per_key
    )


async def remove_limit(store: Store, name: str) -> bool:
    """Remove a named limit; returns False if there is none."""
    return await store.fetchval("select howdah.remove_limit($1)", name)


class NamedLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A row of howdah.limits, and how it is used now."""

    name: str
    at_once: int | None
    rate: int | None
    per: timedelta | None
    burst: int | None
    per_key: bool
    types: list[str]
    admitted: int
    waiting: int
    more: bool  # more jobs than these are admitted or wait
    changed_at: datetime
    changed_by: str


class TypeLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A row of howdah.type_limits: the rule of a job type."""

    job_type: str
    at_once: int | None
    ordered: bool
    fair: bool
    limit_name: str | None
    changed_at: datetime
    changed_by: str


async def type_limits(store: Store) -> list[TypeLimit]:
    """Return the rules of all job types that have one."""
    rows = await store.fetch(
        "select job_type, at_once, ordered, fair, limit_name, changed_at, changed_by "
        "from howdah.type_limits order by job_type"
    )
    return [TypeLimit(**dict(row)) for row in rows]


_LIMITS = """
    select l.name, l.at_once, l.rate, l.per, l.burst, l.per_key,
           array(select t.job_type::text from howdah.type_limits as t
                 where t.limit_name = l.name order by 1) as types,
           (select count(*) from (
                select from howdah.jobs_live as j
                where (j.limited_by = l.name
                       or (j.limited_by >= l.name || ':' and j.limited_by < l.name || ';'))
                  and j.admission = 'admitted' limit $1) as a) as admitted,
           (select count(*) from (
                select from howdah.jobs_live as j
                where (j.limited_by = l.name
                       or (j.limited_by >= l.name || ':' and j.limited_by < l.name || ';'))
                  and j.admission = 'limit' limit $1) as w) as waiting,
           l.changed_at, l.changed_by
    from howdah.limits as l order by l.name
"""
MOST_COUNTED = 10_000


async def named_limits(store: Store) -> list[NamedLimit]:
    """Return all named limits; counts at most so many jobs of each."""
    limits: list[NamedLimit] = []
    for row in await store.fetch(_LIMITS, MOST_COUNTED):
        values: dict[str, Any] = dict(row)
        more = MOST_COUNTED in (values["admitted"], values["waiting"])
        limits.append(NamedLimit(**values, more=more))
    return limits
