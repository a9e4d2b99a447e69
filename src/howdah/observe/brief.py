"""Brief: a shortened payload and the type's label, to tell the jobs of a list apart.

The server cuts a long payload: it sends the first fields and those of the label, without nested
values. The payload is untrusted: code that shows it must escape it and hide secret fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from howdah.store import Store, query

UNCUT = 2_000  # a payload of at most so many characters is not cut
FIELDS = 20  # of a cut payload
LONGEST = 200  # characters of a field name or value in a cut payload


class Brief(msgspec.Struct, frozen=True):
    """The payload of one job as JSON, cut if it is long, and the label of its type."""

    data: str
    label: str | None  # a template over the fields: see text/labels.py


async def briefs(
    store: Store, ids: Sequence[UUID], *, within: timedelta = query.WITHIN
) -> dict[UUID, Brief]:
    """Read the payloads and labels of these jobs."""
    if not ids:
        return {}
    rows = await query.fetch(store, within, _SQL, list(ids), UNCUT, FIELDS, LONGEST)
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
