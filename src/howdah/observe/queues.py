"""Queues: which job types have which queue name, as workers have registered them.

In SQL  sql/20_tables/job_types.sql

A type that no worker has registered counts as one of the queue `default`.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from howdah.checks.queue_names import DEFAULT_QUEUE, refuse_unknown_queues
from howdah.store import Store, query

_NAMED = "select name, queue from howdah.job_types where queue <> 'default' order by name"


async def queue_of_types(store: Store, *, within: timedelta = query.WITHIN) -> dict[str, str]:
    """Return the queue of each type that is not in the queue `default`."""
    return {row[0]: row[1] for row in await query.fetch(store, within, _NAMED)}


async def check_queues(
    store: Store, names: Collection[str], what: str = "queue", *, within: timedelta = query.WITHIN
) -> None:
    """Refuse the name of a queue that no registered type has."""
    if any(name != DEFAULT_QUEUE for name in names):
        known = {DEFAULT_QUEUE, *(await queue_of_types(store, within=within)).values()}
        refuse_unknown_queues(names, known, what)


def in_queues(column: str, names: str) -> str:
    """Write the SQL condition that a job type is in one of these queues."""
    return (
        f"({column} in (select t.name from howdah.job_types as t where t.queue = any ({names}::text[]))"  # noqa: E501, S608
        f" or ('{DEFAULT_QUEUE}' = any ({names}::text[])"
        f" and {column} not in (select t.name from howdah.job_types as t)))"
    )
