"""Page: jobs by filter, newest first, page by page, and how many there are.

A page begins after the last job of the page before (keyset), so the thousandth page costs as
much as the first. A filter that few jobs match would read far back, so one page looks at `DEPTH`
jobs at most. If they end before the page is full, the page says so and the next one continues
there. Ids contain the time of their creation, so a time filter starts at the right id. The live
jobs of a key or a limit are found by an index, if there are not too many: see ids_by_index.py.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from howdah.errors import BadInput
from howdah.job import Job
from howdah.observe.count import CAP, Count, capped
from howdah.observe.filter import Filter
from howdah.observe.filter_sql import Statement
from howdah.observe.ids_by_index import ids_by_index
from howdah.observe.queues import check_queues, in_queues
from howdah.states import State
from howdah.store import Store, query
from howdah.store.rows import columns, job_from, waits_for
from howdah.waits_for import WaitsFor

DEPTH = 20_000  # jobs that one page looks at
LIMIT = 50


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A job as a list shows it: without payload, result and tracebacks."""

    id: UUID
    job_type: str
    priority: int
    status: State
    progress: int
    current_stage: str | None
    events_count: int
    worker_id: str | None
    claimed_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    attempts: int
    max_attempts: int
    last_error: str | None
    run_at: datetime | None
    expires_at: datetime | None
    key: str | None  # the concurrency key
    limited_by: str | None  # the name of its limit; of a limit per key with a colon and the key
    waits_for: WaitsFor | None  # None: it is not pending


_SUMMARY = Summary.__struct_fields__


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some jobs, and where the next page begins."""

    jobs: list[Summary]
    before: UUID | None  # pass it to get the next page; None: this is the last page
    exhausted: bool  # the page ends because it looked at `depth` jobs


async def page(
    store: Store,
    wanted: Filter | None = None,
    *,
    before: UUID | None = None,
    limit: int = LIMIT,
    depth: int = DEPTH,
    within: timedelta = query.WITHIN,
) -> Page:
    """List jobs, newest first; `before` is what the page before returned."""
    if not 1 <= limit <= 1000:
        raise BadInput(f"limit must be between 1 and 1000, not {limit}")
    wanted = wanted or Filter()
    await check_queues(store, wanted.queue, within=within)
    statement = await _statement(store, wanted, before, within)
    sql = statement.page(columns(_SUMMARY), limit + 1, depth)
    rows = await query.fetch(store, within, sql, *statement.args)
    matching = [row for row in rows if row["matches"]]
    full = len(matching) > limit
    end = rows[-1] if rows and not full and rows[-1]["n"] == depth else None
    last = matching[limit - 1]["id"] if full else end["id"] if end is not None else None
    return Page(
        jobs=[_summary(row) for row in matching[:limit]], before=last, exhausted=end is not None
    )


async def list_jobs(
    store: Store, wanted: Filter, *, before: UUID | None = None, limit: int = LIMIT
) -> list[Job]:
    """List whole jobs, newest first; reads as far back as it takes to find `limit` of them."""
    await check_queues(store, wanted.queue)
    statement = await _statement(store, wanted, before, query.WITHIN)
    return [job_from(row) for row in await store.fetch(statement.jobs(limit), *statement.args)]


async def count(
    store: Store,
    wanted: Filter | None = None,
    *,
    cap: int = CAP,
    depth: int = 5 * DEPTH,
    within: timedelta = query.WITHIN,
) -> Count:
    """Count jobs, up to a cap and without reading the history.

    With a filter of only status, type and queue, finished jobs are counted exactly. With any other
    filter, the count is of the `depth` newest jobs.
    """
    wanted = wanted or Filter()
    await check_queues(store, wanted.queue, within=within)
    live = tuple(state for state in wanted.states if not state.finished)
    finished = tuple(state for state in wanted.states if state.finished)
    if not finished or wanted != Filter(
        status=wanted.status, job_type=wanted.job_type, queue=wanted.queue
    ):
        return await _count_matching(store, wanted, cap, depth, within)
    finished_jobs: int = await query.fetchval(
        store,
        within,
        "select coalesce(sum(jobs), 0)::bigint from howdah.finished_counts "  # noqa: S608
        "where status = any ($1::text[]) and (cardinality($2::text[]) = 0 or job_type = any ($2)) "
        f"and (cardinality($3::text[]) = 0 or {in_queues('job_type', '$3')})",
        [str(state) for state in finished],
        list(wanted.job_type),
        list(wanted.queue),
    )
    counted = Count(finished_jobs)
    if live:
        of_live = Filter(status=live, job_type=wanted.job_type, queue=wanted.queue)
        counted += await _count_matching(store, of_live, cap, depth, within)
    return counted


async def _count_matching(
    store: Store, wanted: Filter, cap: int, depth: int, within: timedelta
) -> Count:
    statement = await _statement(store, wanted, None, within)
    row = await query.fetchrow(store, within, statement.count(cap + 1, depth), *statement.args)
    counted = capped(row["jobs"], cap)
    return Count(counted.jobs, counted.more or row["exhausted"])


async def newest_and_oldest(
    store: Store, wanted: Filter | None = None, *, within: timedelta = query.WITHIN
) -> tuple[UUID, UUID] | None:
    """Return the first and the last id that reading all pages would look at."""
    ids: list[UUID] = []
    for order in ("desc", "asc"):
        statement = await _statement(store, wanted or Filter(), None, within)
        rows = await query.fetch(store, within, statement.first(order), *statement.args)
        ids += [row["id"] for row in rows]
    return (ids[0], ids[1]) if len(ids) == 2 else None


async def _statement(
    store: Store, wanted: Filter, before: UUID | None, within: timedelta
) -> Statement:
    return Statement(wanted, before, await ids_by_index(store, wanted, within))


def _summary(row: asyncpg.Record) -> Summary:
    values: dict[str, Any] = {name: row[name] for name in _SUMMARY}
    values["status"] = State(values["status"])
    values["waits_for"] = waits_for(row)
    return Summary(**values)
