"""Ids by index: the live jobs of a filter by key or limit, if there are not too many.

Comes after   filter.py
Comes before  page.py, which then looks at no other live job
In SQL        the indexes jobs_by_key and jobs_by_limit in sql/20_tables/jobs.sql

A page reads jobs from the newest on, and those of one key may be far apart. If more than `MOST`
have the key or the limit, the page reads like that nevertheless.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from howdah.observe.filter import Filter
from howdah.store import Store, query
from howdah.waits_for import WaitsFor

MOST = 10_000
_ADMISSION = {WaitsFor.KEY: "slot", WaitsFor.LIMIT: "limit"}  # these jobs are in the indexes
_BY_LIMIT = """
    select id from (
        (select j.id from howdah.jobs_live as j
         where j.limited_by = $2 and j.limited_by is not null and j.admission is not null {only}
         order by j.limited_by, j.admission, ~j.priority, j.arrival limit $1)
        union all
        (select j.id from howdah.jobs_live as j
         where j.limited_by >= $3 and j.limited_by < $4 and j.admission is not null {only}
         order by j.limited_by, j.admission, ~j.priority, j.arrival limit $1)) as found
"""
_BY_KEY = """
    select found.id from unnest($2::text[]) as t (job_type) cross join lateral (
        select j.id from howdah.jobs_live as j
        where j.job_type = t.job_type and j.key is not null and j.admission is not null {only}
        order by j.job_type, j.key, j.admission, ~j.priority, j.arrival limit $1) as found
    limit $1
"""
# a type whose keys have any number of slots may have jobs that are in no index
_UNLIMITED = """
    select exists (select from howdah.type_limits where job_type = any ($1) and at_once is null)
"""


async def ids_by_index(store: Store, wanted: Filter, within: timedelta) -> list[UUID] | None:
    """Read the ids of the live jobs that can match; None: they are too many, or in no index.

    A job that was locked when the rule of its type changed is missing until that rule is applied
    to it, a second later.
    """
    if all(state.finished for state in wanted.states):
        return None
    only, given = _only(wanted.waits_for), wanted.waits_for
    args: list[object] = [MOST + 1]
    if wanted.limited_by is not None:
        sql = _BY_LIMIT.format(only=only)
        args += [wanted.limited_by, *per_key_range(wanted.limited_by)]
    elif wanted.job_type and wanted.key is not None:
        if not only and await query.fetchval(store, within, _UNLIMITED, list(wanted.job_type)):
            return None
        sql = _BY_KEY.format(only=f"and j.key = $3 {only}")
        args += [list(wanted.job_type), wanted.key]
    elif wanted.job_type and given and set(given) == {WaitsFor.KEY}:
        sql = _BY_KEY.format(only="")
        args.append(list(wanted.job_type))
    else:
        return None
    rows = await query.fetch(store, within, sql, *args)
    return None if len(rows) > MOST else [row[0] for row in rows]


def _only(waits_for: tuple[WaitsFor, ...]) -> str:
    """Write a condition on the second column of both indexes, if only these jobs can match."""
    values = [_ADMISSION.get(each, "") for each in waits_for]
    listed = "', '".join(values)
    return f"and j.admission in ('{listed}')" if values and all(values) else ""


def per_key_range(limit: str) -> tuple[str, str]:
    """Return the range of `limited_by` of a limit per key: from its name and a colon on."""
    return (limit, limit) if ":" in limit else (f"{limit}:", f"{limit};")
