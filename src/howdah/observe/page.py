"""Page: jobs by filter, newest first, page by page, and how many there are.

Pages go by keyset: a page begins behind the last job of the page before. A filter that few jobs
match would have to read far back, so one page looks at `DEPTH` jobs at most; when they are used up
before the page is full, it says so and the next page goes on from there. Ids tell when a job was
made, so a time filter begins at the right place instead of reading up to it.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from howdah.errors import BadInput
from howdah.observe.count import CAP, Count, capped
from howdah.states import State
from howdah.store import Store, query
from howdah.store.rows import JOB_FIELDS

DEPTH = 20_000  # jobs that one page looks at
LIMIT = 50
_LIVE = (State.PENDING, State.CLAIMED, State.RUNNING)
_SUMMARY = tuple(name for name in JOB_FIELDS if name not in ("data", "result", "errors"))
_SLACK = timedelta(minutes=1)  # ids are made by many clocks
_FIRST, _LAST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)
_BIGINT = 2**63


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; what is left out lets all through."""

    status: tuple[State, ...] = ()
    job_type: tuple[str, ...] = ()
    priority: int | None = None
    worker_id: str | None = None
    attempts_from: int | None = None
    attempts_to: int | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    error: str | None = None  # a part of the last error, in any case
    fingerprint: str | None = None  # of the last error: see failures.py
    payload: tuple[tuple[str, str], ...] = ()  # key and value; a value is JSON or plain text

    def __post_init__(self) -> None:
        for at in (self.created_from, self.created_to):
            if at is not None and at.utcoffset() is None:
                raise BadInput(f"{at.isoformat()} has no time zone, so nobody knows when that is")
        for text in (*self.job_type, self.worker_id, self.error, self.fingerprint):
            if text is not None and "\0" in text:
                raise BadInput("a filter cannot contain a NUL character")
        for number in (self.priority, self.attempts_from, self.attempts_to):
            if number is not None and not -_BIGINT <= number < _BIGINT:
                raise BadInput(f"no job has a number like {number}")


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A job as a list shows it: all but payload, result and tracebacks."""

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


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """Some jobs, and where the next page begins."""

    jobs: list[Summary]
    before: UUID | None  # give this to get the next page; None: there is no more
    exhausted: bool  # so many jobs were looked at that the page ends here, full or not


async def page(
    store: Store,
    wanted: Filter | None = None,
    *,
    before: UUID | None = None,
    limit: int = LIMIT,
    depth: int = DEPTH,
    within: timedelta = query.WITHIN,
) -> Page:
    """List jobs, newest first; `before` is where the page before ended."""
    if not 1 <= limit <= 1000:
        raise BadInput(f"limit lies between 1 and 1000, not {limit}")
    statement = _Query(wanted or Filter(), before, depth)
    rows = await query.fetch(store, within, statement.page(limit + 1), *statement.args)
    found = [row for row in rows if row["matches"]]
    full = len(found) > limit
    end = rows[-1] if rows and not full and rows[-1]["n"] == depth else None
    last = found[limit - 1]["id"] if full else end["id"] if end is not None else None
    return Page(
        jobs=[_summary(row) for row in found[:limit]], before=last, exhausted=end is not None
    )


async def count(
    store: Store,
    wanted: Filter | None = None,
    *,
    cap: int = CAP,
    depth: int = 5 * DEPTH,
    within: timedelta = query.WITHIN,
) -> Count:
    """Count jobs, up to a cap and without reading the history.

    By status and type alone, ended jobs are counted exactly; by anything else, as many as are
    found among the `depth` newest.
    """
    wanted = wanted or Filter()
    statuses = wanted.status or tuple(State)
    live = tuple(state for state in statuses if not state.finished)
    ended = tuple(state for state in statuses if state.finished)
    if not ended or wanted != Filter(status=wanted.status, job_type=wanted.job_type):
        return await _count_found(store, wanted, cap, depth, within)
    known: int = await query.fetchval(
        store,
        within,
        "select coalesce(sum(jobs), 0)::bigint from howdah.finished_counts "
        "where status = any ($1::text[]) and (cardinality($2::text[]) = 0 or job_type = any ($2))",
        [str(state) for state in ended],
        list(wanted.job_type),
    )
    found = Count(known)
    if live:
        alive = Filter(status=live, job_type=wanted.job_type)
        found += await _count_found(store, alive, cap, depth, within)
    return found


async def _count_found(
    store: Store, wanted: Filter, cap: int, depth: int, within: timedelta
) -> Count:
    statement = _Query(wanted, None, depth)
    row = await query.fetchrow(store, within, statement.count(cap + 1), *statement.args)
    found = capped(row["jobs"], cap)
    return Count(found.jobs, found.more or row["exhausted"])


async def ends(
    store: Store, wanted: Filter | None = None, *, within: timedelta = query.WITHIN
) -> tuple[UUID, UUID] | None:
    """Return the newest and the oldest job that a walk over all pages would look at."""
    found: list[UUID] = []
    for order in ("desc", "asc"):
        statement = _Query(wanted or Filter(), None, 1)
        rows = await query.fetch(store, within, statement.end(order), *statement.args)
        found += [row["id"] for row in rows]
    return (found[0], found[1]) if len(found) == 2 else None


def _summary(row: asyncpg.Record) -> Summary:
    values: dict[str, Any] = {name: row[name] for name in _SUMMARY}
    values["status"] = State(values["status"])
    return Summary(**values)


class _Query:
    """A filter as SQL: what an index answers below, the rest above the limit of the depth."""

    def __init__(self, wanted: Filter, before: UUID | None, depth: int) -> None:
        self.args: list[object] = []
        self._below: list[str] = []
        self._above: list[str] = []
        self._depth = depth
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
        if all(status in _LIVE for status in statuses):
            self._below.append("status in ('pending', 'claimed', 'running')")
        elif State.COMPLETED not in statuses and all(status.finished for status in statuses):
            # as the index jobs_finished_badly says it
            self._below.append("status in ('completed', 'failed', 'cancelled')")
            self._below.append("status <> 'completed'")
        self._above.append(f"status = any ({given}::text[])")

    def _range(self, wanted: Filter, before: UUID | None) -> None:
        if before is not None:
            self._below.append(f"id < {self._arg(before)}")
        if wanted.created_to is not None:
            to = _bounded(wanted.created_to)
            self._below.append(f"id < {self._arg(first_id(to + _SLACK))}")
            self._above.append(f"created_at < {self._arg(to)}")
        if wanted.created_from is not None:
            begin = _bounded(wanted.created_from)
            self._below.append(f"id >= {self._arg(first_id(begin - _SLACK))}")
            self._above.append(f"created_at >= {self._arg(begin)}")

    def _rest(self, wanted: Filter) -> None:
        if wanted.job_type:
            self._above.append(f"job_type = any ({self._arg(list(wanted.job_type))}::text[])")
        if wanted.worker_id is not None:
            self._above.append(f"worker_id = {self._arg(wanted.worker_id)}")
        for column, sign, value in (
            ("priority", "=", wanted.priority),
            ("attempts", ">=", wanted.attempts_from),
            ("attempts", "<=", wanted.attempts_to),
        ):
            if value is not None:
                self._above.append(f"{column} {sign} {self._arg(value)}::bigint")
        if wanted.error is not None:
            given = self._arg(wanted.error)
            self._above.append(f"position(lower({given}::text) in lower(last_error)) > 0")
        if wanted.fingerprint is not None:
            given = self._arg(wanted.fingerprint)
            self._above.append(f"howdah.fingerprint(coalesce(last_error, '')) = {given}::text")
        for key, value in wanted.payload:
            self._above.append(f"({self._has(key, value)})")

    def _has(self, key: str, value: str) -> str:
        """Say that the payload has this value: as text, or as the JSON that it is."""
        either = [msgspec.json.encode({key: value}).decode()]
        with suppress(msgspec.DecodeError, RecursionError):
            either.append(msgspec.json.encode({key: msgspec.json.decode(value)}).decode())
        return " or ".join(f"data @> {self._arg(one)}::jsonb" for one in dict.fromkeys(either))

    def _looked_at(self, columns: str, order: str = "desc") -> str:
        below = f"where {' and '.join(self._below)}" if self._below else ""
        matches = f"coalesce({' and '.join(self._above)}, false)" if self._above else "true"
        depth = self._arg(self._depth)
        return (
            f"select {columns}, {matches} as matches, row_number() over () as n from ("  # noqa: S608
            f"select * from howdah.jobs {below} order by id {order} limit {depth}) as newest"
        )

    def page(self, limit: int) -> str:
        looked_at = self._looked_at(", ".join(_SUMMARY))
        depth, most = f"${len(self.args)}", self._arg(limit)
        # the last job that was looked at comes too, to tell where the next page begins
        return f"select * from ({looked_at}) as jobs where matches or n = {depth} limit {most}"  # noqa: S608

    def end(self, order: str) -> str:
        return self._looked_at("id", order)

    def count(self, most: int) -> str:
        looked_at = self._looked_at("id")
        depth, most_ = f"${len(self.args)}", self._arg(most)
        return (
            "select count(*) filter (where matches) as jobs, "  # noqa: S608
            f"coalesce(max(n) = {depth}, false) as exhausted from ("
            f"select * from ({looked_at}) as jobs where matches or n = {depth} limit {most_}"
            ") as found"
        )


def _bounded(at: datetime) -> datetime:
    """Bring a moment to where jobs can be: those beyond mean the same."""
    try:
        return min(max(at.astimezone(UTC), _FIRST), _LAST)
    except OverflowError:
        return _FIRST if at.year < 5000 else _LAST


def first_id(at: datetime) -> UUID:
    """Return the lowest id that a job made at this moment can have."""
    milliseconds = min(max(0, int(at.timestamp() * 1000)), 2**48 - 1)
    return UUID(int=milliseconds << 80)
