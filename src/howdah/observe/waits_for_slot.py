"""Waits for slot: what a job that is not admitted waits for, as a sentence.

In SQL  sql/35_admit/

A job waits for a slot of its key, or for its named limit. The sentence says how many jobs hold a
slot, since when the first of them has been at work, and how many jobs get one before it. A job of a
fair key waits for its turn: then it says how many jobs of its key are ahead of it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import asyncpg

from howdah.observe.count import CAP, Count
from howdah.store import Store, query
from howdah.text.wording import instant, jobs, length

_KEY = """
    select r.at_once, coalesce(r.ordered, false) as ordered,
           coalesce(r.fair, false) as fair, r.job_type is null as no_rule,
           holders.jobs, holders.since,
           (select count(*) from (
                select from howdah.jobs_live as j
                where j.job_type = $1 and j.key = $2 and j.admission = 'slot'
                  and case when coalesce(r.ordered, false) then j.arrival < $4
                           else (~j.priority, j.arrival) < (~$3::int, $4::bigint) end
                limit $5) as before) as before
    from (values (1)) as one
    left join howdah.type_limits as r on r.job_type = $1
    cross join lateral (
        select count(*) as jobs, min(h.claimed_at) as since from (
            select j.claimed_at from howdah.jobs_live as j
            where j.job_type = $1 and j.key = $2 and j.admission < 'slot' limit $5) as h
    ) as holders
"""

_LIMIT = """
    select l.at_once, l.rate, l.per, l.burst, s.used_until, s.in_line, howdah.clock() as now,
           holders.jobs, holders.since,
           (select count(*) from (
                select from howdah.jobs_live as j
                where j.limited_by = $1 and j.admission = 'limit'
                  and (~j.priority, j.arrival) < (~$2::int, $3::bigint)
                limit $4) as before) as before
    from (values (1)) as one
    left join howdah.limits as l on l.name = split_part($1, ':', 1)
    left join howdah.rate_states as s on s.limited_by = $1
    cross join lateral (
        select count(*) as jobs, min(h.claimed_at) as since from (
            select j.claimed_at from howdah.jobs_live as j
            where j.limited_by = $1 and j.admission = 'admitted' limit $4) as h
    ) as holders
"""


# Looks at a number of jobs that have a key, and of those that wait for the limit of the type.
_FIRST = """
    select id from (
        (select j.id, j.admission from howdah.jobs_live as j
         where j.job_type = $1 and j.key is not null and j.admission is not null
         order by j.job_type, j.key, j.admission, ~j.priority, j.arrival limit $2)
        union all
        (select l.id, l.admission from (
            select j.id, j.admission, j.job_type from howdah.type_limits as r
            join howdah.jobs_live as j on j.limited_by = r.limit_name and j.admission = 'limit'
            where r.job_type = $1 limit $2) as l
         where l.job_type = $1)) as found
    where admission in ('slot', 'limit') limit 1
"""


async def first_waiting(store: Store, job_type: str, within: timedelta) -> UUID | None:
    """Return a job of a type that waits for a slot; None if none is found."""
    rows = await query.fetch(store, within, _FIRST, job_type, CAP)
    return rows[0][0] if rows else None


async def waits_for_slot(
    store: Store, job: asyncpg.Record, within: timedelta, key_as: str | None = None
) -> str | None:
    """Say what a pending job waits for; None: not for a slot.

    The sentence has `key_as` instead of the key, if it is given.
    """
    if job["admission"] == "slot":
        return await _for_key(store, job, within, key_as or job["key"])
    if job["admission"] == "limit":
        name, per_key, key = job["limited_by"].partition(":")
        shown = f"{name}:{key_as or key}" if per_key else name
        return await _for_limit(store, job, within, shown)
    return None


async def _for_key(store: Store, job: asyncpg.Record, within: timedelta, shown: str) -> str:
    (row,) = await query.fetch(
        store,
        within,
        _KEY,
        *(job["job_type"], job["key"], job["priority"], job["arrival"], CAP),
    )
    if row["fair"]:
        held = jobs(Count(row["jobs"], row["jobs"] >= CAP))
        return (
            "It waits for its turn, because keys of this type take turns: "
            f"the key {job['key']} has {held} in line or at work"
            f"{_since(row, job['now'])}; {_before(row)}."
        )
    slots = 1 if row["no_rule"] else row["at_once"]
    held = f"{row['jobs']:,} of {slots:,} slots are taken" if slots else "it has no limit now"
    order = ", in the order of enqueueing" if row["ordered"] else ""
    held += _since(row, job["now"])
    return f"It waits for the key {shown}: {held}; {_before(row)}{order}."


async def _for_limit(store: Store, job: asyncpg.Record, within: timedelta, shown: str) -> str:
    (row,) = await query.fetch(
        store, within, _LIMIT, job["limited_by"], job["priority"], job["arrival"], CAP
    )
    parts: list[str] = []
    if row["at_once"] is not None:
        parts.append(
            f"{row['jobs']:,} of {row['at_once']:,} slots are taken{_since(row, row['now'])}"
        )
    if (next_at := next_start(row)) is not None:
        parts.append(f"its rate lets the next job in at {instant(next_at)}")
    parts.append(_before(row))
    return f"It waits for the limit {shown}: {'; '.join(parts)}."


def _since(row: asyncpg.Record, now: datetime) -> str:
    return f", the first for {length(now - row['since'])}" if row["since"] else ""


def _before(row: asyncpg.Record) -> str:
    count = Count(row["before"], row["before"] >= CAP)
    return (
        f"{jobs(count)} {'goes' if count.jobs == 1 else 'go'} before it" if count else "it is next"
    )


def next_start(row: asyncpg.Record) -> datetime | None:
    """Return when the rate lets the next job start; None: it does not hold jobs back now."""
    if row["rate"] is None or row["used_until"] is None:
        return None
    try:
        at: datetime = row["used_until"] + (row["in_line"] + 1 - row["burst"]) * (
            row["per"] / row["rate"]
        )
    except OverflowError:
        return None
    return at if at > row["now"] else None
