"""Steps: the stored steps of one job, with their times, and what a job sleeps or waits for."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from howdah.steps import StepKey
from howdah.store import Store, query
from howdah.text.wording import ago, instant, length

NEVER = 5000  # the year from which on a timeout means that there is none: see step_until.sql
SHOWN_STEPS = 200  # the last ones


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step, a sleep, a wait for a signal, or the last checkpoint."""

    key: StepKey
    attempt: int  # that began it
    began: datetime
    until: datetime | None  # of a sleep: its end; of a wait: the timeout
    ended: datetime | None  # None: it has not ended
    timed_out: bool

    @property
    def blocks(self) -> bool:
        """Whether it is a sleep or a wait that has not ended."""
        return self.ended is None


async def steps(
    store: Store, id: UUID, *, limit: int = SHOWN_STEPS, within: timedelta = query.WITHIN
) -> list[Step]:
    """Read the last steps of a job, in the order in which they began."""
    return await _steps(store, id, "true", limit, within)


async def blocking(store: Store, id: UUID, within: timedelta) -> list[Step]:
    """Read what a job sleeps or waits for; nothing if it was not put back for that."""
    return await _steps(
        store,
        id,
        "s.kind in ('sleep', 'signal') and s.ended_at is null and s.until > howdah.clock() "
        "and exists (select from howdah.jobs_live as j join howdah.job_steps as o "
        "on o.job_id = j.id and o.kind in ('sleep', 'signal') and o.ended_at is null "
        "and o.until = j.run_at where j.id = $1 and j.worker_id is null and j.ready_at is null)",
        SHOWN_STEPS,
        within,
    )


async def _steps(
    store: Store, id: UUID, condition: str, limit: int, within: timedelta
) -> list[Step]:
    rows = await query.fetch(
        store,
        within,
        "select s.kind, s.name, s.number, s.attempt, s.started_at, s.until, "  # noqa: S608
        "case when s.kind = 'sleep' and s.until <= howdah.clock() then s.until "
        "else s.ended_at end, "
        "s.timed_out from howdah.job_steps as s "
        f"where s.job_id = $1 and ({condition}) order by s.started_at desc, s.number desc limit $2",
        id,
        limit,
    )
    return [
        Step(
            key=StepKey(*row[:3]),
            attempt=row[3],
            began=row[4],
            until=None if row[5] is None or row[5].year >= NEVER else row[5],
            ended=row[6],
            timed_out=row[7],
        )
        for row in reversed(rows)
    ]


def sentence_of(waits: list[Step], now: datetime) -> str:
    """Say what a job sleeps or waits for: the wait for each signal, and the end of each sleep."""
    parts = [_part(step, now) for step in waits]
    return f"It {' and '.join(parts)}. Its attempt does not count meanwhile."


def _part(step: Step, now: datetime) -> str:
    until = f" until {instant(step.until)}, in {length(step.until - now)}" if step.until else ""
    if step.key.kind == "sleep":
        return f"sleeps{until}"
    comma = "," if until else ""
    return f"waits for the signal {step.key.name} since {instant(step.began)}{comma}{until}"


def words_of(step: Step, now: datetime) -> str:
    """Say when a step began and how it ended, for a list of steps."""
    if step.key.kind == "checkpoint":
        return f"stored {ago(step.began, now)}"
    if step.ended is None:
        return _part(step, now)
    took = length(step.ended - step.began)
    if step.timed_out:
        return f"timed out after {took}"
    return f"took {took}"
