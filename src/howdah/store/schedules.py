"""Schedules: the calls that change, fire and read them.

In SQL  sql/37_schedules/
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from howdah.checks.schedule_names import unknown_schedule
from howdah.errors import BadInput
from howdah.job import Draft
from howdah.store.enqueue import as_json
from howdah.store.store import Store
from howdah.text.reasons import shown
from howdah.timing import Missed, Overlap, Timing

_OF_ONE_JOB = ("id", "job_type", "data", "trace")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as a program writes it."""

    name: str
    draft: Draft  # each firing enqueues such a job
    timing: Timing
    missed: Missed = "last"
    overlap: Overlap = "allow"

    def row(self) -> dict[str, object]:
        """Return the values with the names of set_schedule's parameters."""
        fields = msgspec.json.decode(as_json([self.draft]))[0]
        every = self.timing.every
        row = {
            "name": self.name,
            "job_type": self.draft.job_type,
            "data": fields["data"],
            "options": {
                name: value
                for name, value in fields.items()
                if value is not None and name not in _OF_ONE_JOB
            },
            "cron": self.timing.cron,
            "every": None if every is None else f"{every.total_seconds():f} s",
            "tz": self.timing.tz,
            "missed": self.missed,
            "overlap": self.overlap,
        }
        return {name: value for name, value in row.items() if value is not None}


def check_scheduled(draft: object) -> Draft:
    """Return a draft that every firing of a schedule can enqueue."""
    if not isinstance(draft, Draft):
        raise BadInput(
            f"a schedule takes a draft, not {shown(draft)}: "
            'write job_type.draft(…), or queue.draft("name of the type", {…})'
        )
    for name in ("run_at", "delay", "expires_at"):
        if getattr(draft, name) is not None:
            raise BadInput(
                f"the draft of a schedule must have no {name}: the schedule says when its jobs "
                "are due, and expires how long after that they may start"
            )
    if draft.unique is not None and draft.unique.on_conflict == "error":
        # nobody would hear the error of a firing
        unique = msgspec.structs.replace(draft.unique, on_conflict="existing")
        return msgspec.structs.replace(draft, unique=unique)
    return draft


async def set_schedule(store: Store, plan: Plan, by: str | None = None) -> None:
    row = plan.row()
    await store.fetchval(
        "select howdah.set_schedule($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        plan.name,
        plan.draft.job_type,
        plan.draft.data,
        plan.timing.cron,
        plan.timing.every,
        plan.timing.tz,
        plan.missed,
        plan.overlap,
        msgspec.json.encode(row["options"]).decode(),
        by,
    )


async def remove_schedule(store: Store, name: str) -> bool:
    """Remove a schedule; returns False if there is none."""
    return await store.fetchval("select howdah.remove_schedule($1)", name)


async def pause_schedule(store: Store, name: str, by: str | None = None) -> bool:
    """Pause a schedule; False: it was paused. Raises UnknownSchedule."""
    return await _on_known(store, name, "select howdah.pause_schedule($1, $2)", by)


async def resume_schedule(store: Store, name: str) -> bool:
    """Resume a schedule; False: it was not paused. Raises UnknownSchedule."""
    return await _on_known(store, name, "select howdah.resume_schedule($1)")


async def run_schedule_now(store: Store, name: str) -> UUID:
    """Enqueue a job of a schedule, and return its id. Raises UnknownSchedule."""
    return await _on_known(store, name, "select howdah.run_schedule_now($1)")


async def schedule_names(store: Store) -> list[str]:
    rows = await store.fetch("select name from howdah.schedules order by name")
    return [row[0] for row in rows]


async def _on_known(store: Store, name: str, sql: str, *values: object) -> Any:
    try:
        return await store.fetchval(sql, name, *values)
    except BadInput:
        if name in (known := await schedule_names(store)):
            raise
        raise unknown_schedule(name, known) from None


async def register_schedules(
    store: Store, worker_id: str, types: Sequence[str], plans: Sequence[Plan]
) -> list[tuple[str, str]]:
    """Register what a worker's code declares; returns names, and what was done with each."""
    rows = await store.fetch(
        "select name, done from howdah.register_schedules($1, $2, $3)",
        worker_id,
        list(types),
        msgspec.json.encode([plan.row() for plan in plans]).decode(),
    )
    return [(row[0], row[1]) for row in rows]


class Due(NamedTuple):
    """A schedule that is due, or whose next firing is to be computed."""

    name: str
    version: int
    cron: str | None
    every: timedelta | None
    tz: str
    missed: Missed
    next_firing: datetime | None
    counts_from: datetime
    now: datetime  # of the database's clock


async def due_schedules(store: Store, limit: int) -> list[Due]:
    rows = await store.fetch(
        "select name, version, cron, every, tz, missed, next_firing, counts_from, clock "
        "from howdah.due_schedules($1)",
        limit,
    )
    return [Due(*row) for row in rows]


class Firing(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has computed for a schedule that is due: see fire_schedules.sql."""

    name: str
    version: int
    expected: datetime | None
    times: list[datetime] = []
    next: datetime | str | None = None
    problem: str | None = None


class Fired(NamedTuple):
    """What became of one schedule."""

    name: str
    jobs: int
    skipped: bool
    problem: str | None


async def fire_schedules(store: Store, firings: Sequence[Firing]) -> list[Fired]:
    rows = await store.fetch(
        "select name, jobs, skipped, problem from howdah.fire_schedules($1)",
        msgspec.json.encode(firings).decode(),
    )
    return [Fired(*row) for row in rows]
