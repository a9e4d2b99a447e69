"""Filter SQL: a filter as the statements that list and count its jobs.

Comes after   filter.py
Comes before  page.py, which runs them
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from howdah.observe.filter import Filter
from howdah.observe.ids_by_index import per_key_range
from howdah.observe.queues import in_queues
from howdah.states import State
from howdah.store.rows import JOB_COLUMNS, WAITS_FOR

_SLACK = timedelta(minutes=1)  # ids are made by many clocks
_EARLIEST, _LATEST = datetime(2, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)


class Statement:
    """A filter as SQL: conditions that an index answers, and the others.

    The first kind limits which jobs are looked at; the second kind is checked on each of those.
    """

    def __init__(
        self, wanted: Filter, before: UUID | None, live_ids: list[UUID] | None = None
    ) -> None:
        self.args: list[object] = []
        self._indexed: list[str] = []
        self._checked: list[str] = []
        self._states: tuple[State, ...] = wanted.states
        self._live_ids: list[UUID] | None = live_ids
        self._status(wanted)
        self._range(wanted, before)
        self._rest(wanted)

    def _arg(self, value: object) -> str:
        self.args.append(value)
        return f"${len(self.args)}"

    def _status(self, wanted: Filter) -> None:
        if wanted.status:
            given = self._arg([str(status) for status in wanted.status])
            self._checked.append(f"status = any ({given}::text[])")
        if wanted.waits_for:
            given = self._arg([str(each) for each in wanted.waits_for])
            self._checked.append(f"{WAITS_FOR} = any ({given}::text[])")

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
        if wanted.key is not None:
            self._checked.append(f"key = {self._arg(wanted.key)}")
        if wanted.limited_by is not None:
            self._limited_by(wanted.limited_by)
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

    def _limited_by(self, limit: str) -> None:
        begin, end = per_key_range(limit)
        given, first, last = self._arg(limit), self._arg(begin), self._arg(end)
        self._checked.append(
            f"(limited_by = {given} or (limited_by >= {first} and limited_by < {last}))"
        )

    def _has(self, key: str, value: str) -> str:
        """Write the condition that the payload has this value, as text or as JSON."""
        documents = [msgspec.json.encode({key: value}).decode()]
        with suppress(msgspec.DecodeError, RecursionError):
            documents.append(msgspec.json.encode({key: msgspec.json.decode(value)}).decode())
        return " or ".join(f"data @> {self._arg(text)}::jsonb" for text in dict.fromkeys(documents))

    def jobs(self, limit: int) -> str:
        where = f"where {' and '.join(self._checked)}" if self._checked else ""
        most = self._arg(limit)
        return (
            f"select {JOB_COLUMNS} from (select * from {self._source()}) as jobs {where} "  # noqa: S608
            f"order by id desc limit {most}"
        )

    def page(self, columns: str, limit: int, depth: int) -> str:
        looked_at, deepest = self._looked_at(columns, depth)
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
        matches = f"coalesce({' and '.join(self._checked)}, false)" if self._checked else "true"
        deepest = self._arg(depth)
        return (
            f"select {columns}, {matches} as matches, row_number() over () as n from ("  # noqa: S608
            f"select * from {self._source()} order by id {order} limit {deepest}) as newest"
        ), deepest

    def _source(self) -> str:
        """Write what to read: all jobs in these states, or of the live ones only some."""
        live = any(not state.finished for state in self._states)
        finished = tuple(state for state in self._states if state.finished)
        if not live and not finished:
            return "howdah.jobs where false"
        if self._live_ids is None or not live:
            return self._part(live, finished)
        some = f"id = any ({self._arg(self._live_ids)}::uuid[])"
        if not finished:
            return self._part(True, (), some)
        return (
            f"(select * from {self._part(True, (), some)} "  # noqa: S608
            f"union all select * from {self._part(False, finished)}) as jobs"
        )

    def _part(self, live: bool, finished: tuple[State, ...], *more: str) -> str:
        conditions = [*self._indexed, *more]
        if not finished:
            conditions.append("status in ('pending', 'claimed', 'running')")
        elif not live:
            conditions.append("status in ('completed', 'failed', 'cancelled')")
            if State.COMPLETED not in finished:  # the condition of the index jobs_finished_badly
                conditions.append("status <> 'completed'")
        return f"howdah.jobs where {' and '.join(conditions)}" if conditions else "howdah.jobs"


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
