"""Key counts: for each concurrency key of a type, how many jobs hold a slot and how many wait.

In SQL  sql/80_observe/key_counts.sql

Of a type with more than `KEYS` keys, so many are compared, in their order, and the keys that are
most frequent in a sample. Not all jobs of a key are counted. So the cost does not grow with the
number of keys or jobs.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from howdah.observe.count import CAP, Count
from howdah.store import Store, query

KEYS = 2_000


class KeyCount(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one key."""

    key: str
    holding: Count  # jobs that hold a slot
    waiting: Count  # jobs that wait for a slot


class KeyCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The keys of a type for which most jobs wait, and how many slots each has."""

    job_type: str
    at_once: int | None  # slots of each key; None: any number
    ordered: bool
    fair: bool  # keys take turns; then the database keeps at_once
    limited_by: str | None  # the limit that its jobs need too
    keys: list[KeyCount]
    more: bool  # there are more keys with jobs
    exhausted: bool  # the type has so many keys that not all were compared


_SQL = """
    select rule.*, k.key, k.holding, k.waiting, k.more,
           coalesce(count(*) filter (where k.holding > 0 or k.waiting > 0) over (), 0) as keys,
           coalesce(bool_or(k.unread) over (), false) as unread
    from (select case when r.job_type is null then 1 else r.at_once end as at_once,
                 coalesce(r.ordered, false) as ordered, coalesce(r.fair, false) as fair,
                 r.limit_name as limited_by
          from (values ($1::text)) as asked (job_type)
          left join howdah.type_limits as r on r.job_type = asked.job_type) as rule
    left join howdah.key_counts($1, $2, $3) as k on true
    order by k.waiting desc nulls last, k.holding desc, k.key limit $4
"""


async def key_counts(
    store: Store,
    job_type: str,
    *,
    limit: int = 20,
    cap: int = CAP,
    keys: int = KEYS,
    within: timedelta = query.WITHIN,
) -> KeyCounts:
    """Count the jobs of each key of a type; returns the keys for which most jobs wait."""
    rows = await query.fetch(store, within, _SQL, job_type, cap, keys, limit)
    first = rows[0]
    return KeyCounts(
        job_type=job_type,
        at_once=first["at_once"],
        ordered=first["ordered"],
        fair=first["fair"],
        limited_by=first["limited_by"],
        keys=[
            KeyCount(
                key=row["key"],
                holding=Count(row["holding"], row["holding"] >= cap),
                waiting=Count(row["waiting"], row["more"]),
            )
            for row in rows
            if row["holding"] or row["waiting"]
        ],
        more=first["keys"] > limit or first["unread"],
        exhausted=first["unread"],
    )
