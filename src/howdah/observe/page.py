"""Page: jobs by filter, newest first, page by page, and how many there are.

A page begins after the last job of the page before (keyset), so the thousandth page costs as
much as the first. A filter that few jobs match would read far back, so one page looks at `DEPTH`
jobs at most. If they end before the page is full, the page says so and the next one continues
there. Ids contain the time of their creation, so a time filter starts at the right id.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from howdah.errors import BadInput
from howdah.job import Job
from howdah.observe.count import CAP, Count, capped
from howdah.observe.queues import check_queues, in_queues
from howdah.states import State
from howdah.store import Store, query
from howdah.store.rows import JOB_COLUMNS, JOB_FIELDS, job_from

DEPTH = 20_000  # jobs that one page looks at
LIMIT = 50
_WHOLE = ("data", "result", "errors", "unique_key")  # only of a whole job
_SUMMARY = tuple(name for name in JOB_FIELDS if name not in _WHOLE)
_SLACK = timedelta(minutes=1)  # ids are made by many clocks
_EARLIEST, _LATEST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)
_BIGINT = 2**63


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; a field that is left out matches every job."""

    status: tuple[State, ...] = ()
    job_type: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()  # of its type
    priority: int | None = None
    worker_id: str | None = None
    attempts_from: int | None = None
    attempts_to: int | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    error: str | None = None  # a part of the last error, upper or lower case
    fingerprint: str | None = None  # of the last error: see failures.py
    payload: tuple[tuple[str, str], ...] = ()  # key and value; the value is JSON or text

    def __post_init__(self) -> None:
        for at in (self.created_from, self.created_to):
            if at is not None and at.utcoffset() is None:
                raise BadInput(f"{at.isoformat()} has no time zone: add one, such as +00:00")
        for text in (*self.job_type, *self.queue, self.worker_id, self.error, self.fingerprint):
            if text is not None and "\0" in text:
                raise BadInput("a filter cannot contain a NUL character")
        for number in (self.priority, self.attempts_from, self.attempts_to):
            if number is not None and not -_BIGINT <= number < _BIGINT:
                raise BadInput(f"{number} is too large for a filter: use a 64-bit integer")


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
    statement = _Statement(wanted, before)
    rows = await query.fetch(store, within, statement.page(limit + 1, depth), *statement.args)
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
    statement = _Statement(wanted, before)
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
    statuses = wanted.status or tuple(State)
    live = tuple(state for state in statuses if not state.finished)
    finished = tuple(state for state in statuses if state.finished)
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
    statement = _Statement(wanted, None)
    row = await query.fetchrow(store, within, statement.count(cap + 1, depth), *statement.args)
    counted = capped(row["jobs"], cap)
    return Count(counted.jobs, counted.more or row["exhausted"])


async def newest_and_oldest(
    store: Store, wanted: Filter | None = None, *, within: timedelta = query.WITHIN
) -> tuple[UUID, UUID] | None:
    """Return the first and the last id that reading all pages would look at."""
    ids: list[UUID] = []
    for order in ("desc", "asc"):
        statement = _Statement(wanted or Filter(), None)
        rows = await query.fetch(store, within, statement.first(order), *statement.args)
        ids += [row["id"] for row in rows]
    return (ids[0], ids[1]) if len(ids) == 2 else None


def _summary(row: asyncpg.Record) -> Summary:
    values: dict[str, Any] = {name: row[name] for name in _SUMMARY}
    values["status"] = State(values["status"])
    return Summary(**values)


class _Statement:
    """A filter as SQL: conditions that an index answers, and the others.

    The first kind limits which jobs are looked at; the second kind is checked on each of those.
    """

    def __init__(self, wanted: Filter, before: UUID | None) -> None:
        self.args: list[object] = []
        self._indexed: list[str] = []
        self._checked: list[str] = []
        self._status(wanted.status)
        self._range(wanted, before)
        self._rest(wanted)

    def _arg(self, value: object) -> str:
        self.args.append(value)
        return f"${len(self.args)}"

    def _status(self, statuses: tuple[State, ...]) -> None:
        if not statuses:
            return
        given = self._arg([str(status) for status in statuses])
        if not any(status.finished for status in statuses):
            self._indexed.append("status in ('pending', 'claimed', 'running')")
        elif State.COMPLETED not in statuses and all(status.finished for status in statuses):
            # the conditions of the index jobs_finished_badly
            self._indexed.append("status in ('completed', 'failed', 'cancelled')")
            self._indexed.append("status <> 'completed'")
        self._checked.append(f"status = any ({given}::text[])")

    def _range(self, wanted: Filter, before: UUID | None) -> None:
        if before is not None:
            self._indexed.append(f"id < {self._arg(before)}")
        if wanted.created_to is not None:
            to = _bounded(wanted.created_to)
            self._indexed.append(f"id < {self._arg(first_id(to + _SLACK))}")
            self._checked.append(f"created_at < {self._arg(to)}")
        if wanted.created_from is not None:
            begin = _bounded(wanted.created_from)
            self._indexed.append(f"id >= {self._arg(first_id(begin - _SLACK))}")
            self._checked.append(f"created_at >= {self._arg(begin)}")

    def _rest(self, wanted: Filter) -> None:
        if wanted.job_type:
            self._checked.append(f"job_type = any ({self._arg(list(wanted.job_type))}::text[])")
        if wanted.queue:
            self._checked.append(in_queues("job_type", self._arg(list(wanted.queue))))
        if wanted.worker_id is not None:
            self._checked.append(f"worker_id = {self._arg(wanted.worker_id)}")
        for column, sign, value in (
            ("priority", "=", wanted.priority),
            ("attempts", ">=", wanted.attempts_from),
            ("attempts", "<=", wanted.attempts_to),
        ):
            if value is not None:
                self._checked.append(f"{column} {sign} {self._arg(value)}::bigint")
        if wanted.error is not None:
            given = self._arg(wanted.error)
            self._checked.append(f"position(lower({given}::text) in lower(last_error)) > 0")
        if wanted.fingerprint is not None:
            given = self._arg(wanted.fingerprint)
            self._checked.append(f"howdah.fingerprint(coalesce(last_error, '')) = {given}::text")
        for key, value in wanted.payload:
            self._checked.append(f"({self._has(key, value)})")

    def _has(self, key: str, value: str) -> str:
        """Write the condition that the payload has this value, as text or as JSON."""
        documents = [msgspec.json.encode({key: value}).decode()]
        with suppress(msgspec.DecodeError, RecursionError):
            documents.append(msgspec.json.encode({key: msgspec.json.decode(value)}).decode())
        return " or ".join(f"data @> {self._arg(text)}::jsonb" for text in dict.fromkeys(documents))

    def jobs(self, limit: int) -> str:
        conditions = [*self._indexed, *self._checked]
        where = f"where {' and '.join(conditions)}" if conditions else ""
        most = self._arg(limit)
        return f"select {JOB_COLUMNS} from howdah.jobs {where} order by id desc limit {most}"  # noqa: S608

    def page(self, limit: int, depth: int) -> str:
        looked_at, deepest = self._looked_at(", ".join(_SUMMARY), depth)
        most = self._arg(limit)
        # the last job that was looked at comes too: the next page begins after it
        return f"select * from ({looked_at}) as jobs where matches or n = {deepest} limit {most}"  # noqa: S608

    def count(self, limit: int, depth: int) -> str:
        looked_at, deepest = self._looked_at("id", depth)
        most = self._arg(limit)
        return (
            "select count(*) filter (where matches) as jobs, "  # noqa: S608
            f"coalesce(max(n) = {deepest}, false) as exhausted from ("
            f"select * from ({looked_at}) as jobs where matches or n = {deepest} limit {most}"
            ") as matching"
        )

    def first(self, order: str) -> str:
        return self._looked_at("id", 1, order)[0]

    def _looked_at(self, columns: str, depth: int, order: str = "desc") -> tuple[str, str]:
        """Write the query of the jobs that are looked at; returns it and the depth's parameter."""
        where = f"where {' and '.join(self._indexed)}" if self._indexed else ""
        matches = f"coalesce({' and '.join(self._checked)}, false)" if self._checked else "true"
        deepest = self._arg(depth)
        return (
            f"select {columns}, {matches} as matches, row_number() over () as n from ("  # noqa: S608
            f"select * from howdah.jobs {where} order by id {order} limit {deepest}) as newest"
        ), deepest


def _bounded(at: datetime) -> datetime:
    """Limit an instant to the range that ids and PostgreSQL can express."""
    try:
        return min(max(at.astimezone(UTC), _EARLIEST), _LATEST)
    except OverflowError:
        return _EARLIEST if at.year < 5000 else _LATEST


def first_id(at: datetime) -> UUID:
    """Return the lowest id that a job created at this instant can have."""
    milliseconds = min(max(0, int(at.timestamp() * 1000)), 2**48 - 1)
    return UUID(int=milliseconds << 80)
