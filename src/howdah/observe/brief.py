"""Brief: what tells the jobs of a list apart: the payload, cut, and the label of the type.

A payload that is long is cut by the server: its first fields and those of the label, without what
is nested in it. Anybody may have enqueued it: whoever shows it hides what is secret and escapes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from howdah.store import Store, query

WHOLE = 2_000  # characters of a payload that is not cut
FIELDS = 20  # of one that is
LONGEST = 200  # characters of a value of those, and of a name


class Brief(msgspec.Struct, frozen=True):
    """The payload of one job as JSON, cut where it is long, and the label of its type."""

    data: str
    label: str | None  # a template over the fields: see text/labels.py


async def briefs(
    store: Store, ids: Sequence[UUID], *, within: timedelta = query.WITHIN
) -> dict[UUID, Brief]:
    """Read what tells these jobs apart."""
    if not ids:
        return {}
    rows = await query.fetch(store, within, _SQL, list(ids), WHOLE, FIELDS, LONGEST)
    return {row["id"]: Brief(row["data"], row["label"]) for row in rows}


_SQL = """
select j.id, t.label,
       case when length(w.written) <= $2 then w.written else coalesce((
           select jsonb_object_agg(f.key, f.cut)::text from (
               select e.key, case when jsonb_typeof(e.value) in ('object', 'array') then '"…"'
                                  else to_jsonb(left(e.value #>> '{}', $4)) end as cut
               from jsonb_each(j.data) as e where length(e.key) <= $4
               order by position('{' || e.key || '}' in coalesce(t.label, '')) > 0 desc
               limit $3
           ) as f), '{}') end as data
from howdah.jobs_by_id($1) as j
left join howdah.job_types as t on t.name = j.job_type
cross join lateral (select j.data::text as written) as w
"""
