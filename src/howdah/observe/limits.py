"""Limits: the named limits and the rules of job types, and how they are used now.

In SQL  sql/80_observe/limit_counts.sql, slot_wait_counts.sql

Jobs are counted up to a cap, whatever waits. A limit per key is counted over all its keys. Counts
that take too long are None, and named in `late`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import asyncpg
import msgspec

from howdah.checks.limit_names import unknown_limit
from howdah.observe.count import CAP, Count
from howdah.observe.waits_for_slot import next_start
from howdah.store import Store, query

MOST = 1000  # limits, and rules, that are read: the first by name


class NamedLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that several job types share, and its use."""

    name: str
    at_once: int | None  # null: any number
    rate: int | None  # starts per time; null: any number
    per: timedelta | None
    burst: int | None
    per_key: bool  # each key has the whole limit for itself
    types: list[str]  # whose rule names it
    admitted: Count | None  # jobs that hold a slot
    at_work: int | None  # of these, how many a worker holds
    waiting: Count | None  # jobs that wait for it
    keys: Count | None  # of a limit per key: how many keys have jobs
    next_start_at: datetime | None  # when the rate lets the next in; null: at once, or unknown
    in_line_since: datetime | None  # since when the first admitted job waits for a worker
    waits_since: datetime | None  # of the jobs that are next: when the oldest was due
    declared: bool  # a worker has registered it; else it was made by hand
    changed_at: datetime
    changed_by: str

    @property
    def per_second(self) -> float | None:
        """The rate in starts per second."""
        if self.rate is None or self.per is None:
            return None
        return self.rate / self.per.total_seconds()


class TypeRule(msgspec.Struct, frozen=True, kw_only=True):
    """What limits the jobs of a type."""

    job_type: str
    at_once: int | None  # per key; null: any number
    ordered: bool  # one after the other, in the order of enqueueing
    fair: bool  # keys take turns; then the database keeps at_once
    limit: str | None  # the named limit that each job needs too
    waiting: Count | None  # jobs that wait for a slot of their key
    declared: bool
    changed_at: datetime
    changed_by: str


class SlotWait(msgspec.Struct, frozen=True):
    """How many jobs of a type wait for a slot of their key."""

    job_type: str
    jobs: Count


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """All named limits and all rules, by name."""

    at: datetime  # by the server's clock
    limits: list[NamedLimit]
    rules: list[TypeRule]
    late: list[str]  # parts that took too long and are missing

    def limit(self, name: str) -> NamedLimit:
        """Return one limit; raises UnknownLimit."""
        for limit in self.limits:
            if limit.name == name:
                return limit
        raise unknown_limit(name, [limit.name for limit in self.limits])


async def limits(store: Store, *, within: timedelta = query.WITHIN, cap: int = CAP) -> Limits:
    """Read the named limits and the rules of types."""
    late: list[str] = []
    now: datetime = await query.fetchval(store, within, "select howdah.clock()")
    try:
        named = await named_limits(store, within=within, cap=cap)
    except query.TookTooLong:
        late.append("limits")
        named = await named_limits(store, within=within, cap=0)
    rules = await query.fetch(store, within, _RULES, MOST)
    try:
        waits = {
            wait.job_type: wait.jobs for wait in await slot_waits(store, within=within, cap=cap)
        }
    except query.TookTooLong:
        late.append("slots")
        waits = None
    return Limits(
        at=now,
        limits=named,
        rules=[
            TypeRule(**row, waiting=None if waits is None else waits.get(row["job_type"], Count()))
            for row in rules
        ],
        late=late,
    )


async def named_limits(
    store: Store, *, within: timedelta = query.WITHIN, cap: int = CAP
) -> list[NamedLimit]:
    """Read the named limits, and count at most so many jobs of each; 0: count nothing."""
    named = await query.fetch(store, within, _NAMED, MOST)
    counts: dict[str, asyncpg.Record] = {}
    if named and cap:
        rows = await query.fetch(
            store, within, "select * from howdah.limit_counts($1, $2)", cap, MOST
        )
        counts = {row["name"]: row for row in rows}
    return [_limit(row, counts.get(row["name"])) for row in named]


async def slot_waits(
    store: Store, *, within: timedelta = query.WITHIN, cap: int = CAP
) -> list[SlotWait]:
    """Count the jobs that wait for a slot of their key, of each type that has jobs with a key."""
    rows = await query.fetch(store, within, "select * from howdah.slot_wait_counts($1)", cap)
    return [SlotWait(row["job_type"], Count(row["jobs"], row["more"])) for row in rows]


_NAMED = """
    select l.name, l.at_once, l.rate, l.per, l.burst, l.per_key, l.declared is not null as declared,
           l.changed_at, l.changed_by, s.used_until, s.in_line, howdah.clock() as now,
           array(select t.job_type::text from howdah.type_limits as t
                 where t.limit_name = l.name order by 1 limit $1) as types
    from howdah.limits as l left join howdah.rate_states as s on s.limited_by = l.name
    order by l.name limit $1
"""

_RULES = """
    select t.job_type::text as job_type, t.at_once, t.ordered, t.fair, t.limit_name as limit,
           t.declared is not null as declared, t.changed_at, t.changed_by
    from howdah.type_limits as t order by 1 limit $1
"""


def _limit(row: asyncpg.Record, counts: asyncpg.Record | None) -> NamedLimit:
    known = counts is not None
    return NamedLimit(
        **{name: row[name] for name in _OWN},
        admitted=Count(counts["admitted"], counts["more_admitted"]) if known else None,
        at_work=counts["at_work"] if known else None,
        waiting=Count(counts["waiting"], counts["more_waiting"]) if known else None,
        keys=Count(counts["keys"], counts["more_keys"]) if known and row["per_key"] else None,
        next_start_at=None if row["per_key"] else next_start(row),
        in_line_since=counts["in_line_since"] if known else None,
        waits_since=counts["waits_since"] if known else None,
    )


_OWN = (
    *("name", "at_once", "rate", "per", "burst", "per_key", "types"),
    *("declared", "changed_at", "changed_by"),
)
