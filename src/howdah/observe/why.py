"""Why: what a job, or a type, waits for, in one plain sentence and one word for programs.

The first reason that holds is told, the one that would keep the job waiting even if all the
others were gone: not due, paused, no worker, no free slot, others go first.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from howdah.errors import JobNotFound
from howdah.observe.count import CAP, Count
from howdah.observe.overview import Listener, listeners
from howdah.observe.wording import amounts, instant, jobs, length, some
from howdah.observe.workers import read_held_up
from howdah.states import State
from howdah.store import Store, query
from howdah.store.steer import Paused, paused

UPKEEP = timedelta(seconds=10)  # a due job that nobody lets into the line for so long


class Reason(StrEnum):
    """Why, for programs."""

    NOT_DUE = "not_due"
    WAITING_FOR_RETRY = "waiting_for_retry"
    UNREAD = "unread"  # the workers that met it cannot read its payload
    PAUSED = "paused"
    NOBODY_LISTENS = "nobody_listens"  # no live worker knows the type
    NOBODY_PROMOTES = "nobody_promotes"  # it is due, and no worker runs to let it in line
    SLOTS_BUSY = "slots_busy"
    BEHIND = "behind"  # others go first
    READY = "ready"  # the next to be claimed
    CLAIMED = "claimed"
    RUNNING = "running"
    WORKER_SILENT = "worker_silent"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    IDLE = "idle"  # of a type: nothing waits

    @property
    def needs_a_person(self) -> bool:
        """Whether it stays like this until somebody does something."""
        return self in _STAYS


_STAYS = {
    Reason.UNREAD,
    Reason.PAUSED,
    Reason.NOBODY_LISTENS,
    Reason.NOBODY_PROMOTES,
    Reason.FAILED,
    Reason.CANCELLED,
}


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    reason: Reason
    sentence: str
    job_type: str
    job_id: UUID | None = None
    until: datetime | None = None  # not due, waiting for a retry, or unread, until then
    worker_id: str | None = None  # who has it
    listeners: list[str] = msgspec.field(default_factory=list[str])  # live workers of the type
    slots: int = 0  # of those
    busy: int = 0
    busy_with: dict[str, int] = msgspec.field(default_factory=dict[str, int])  # jobs by type
    ahead_higher: Count = Count()  # jobs of a higher priority that those would take first
    ahead_older: Count = Count()  # of the same priority, but older
    paused: Paused | None = None

    @property
    def needs_a_person(self) -> bool:
        return self.reason.needs_a_person


async def why(store: Store, id: UUID, *, within: timedelta = query.WITHIN) -> Why:
    """Say why a job is where it is; raises JobNotFound."""
    rows = await query.fetch(
        store,
        within,
        "select j.*, howdah.clock() as now, w.beat_at, w.silent_after, "
        "w.info->'held_up' as held_up, "
        "j.unread_since + howdah.option('fail_unread_after')::interval as unread_until "
        "from howdah.jobs_by_id(array[$1::uuid]) as j "
        "left join howdah.workers as w on w.id = j.worker_id",
        id,
    )
    if not rows:
        raise JobNotFound(f"there is no job {id}: never committed, or pruned after its retention")
    row = rows[0]
    status = State(row["status"])
    if status.finished:
        return _ended(row, status)
    if status is not State.PENDING:
        return _held(row, status)
    known: dict[str, Any] = {"job_type": row["job_type"], "job_id": id}
    if row["unread_since"] is not None:
        return _unread(row, known)
    pause = (await paused(store, within=within)).get(row["job_type"])
    if row["ready_at"] is None:
        return _not_in_line(row, pause, known)
    crew = await _Crew.of(store, row["job_type"], within)
    return await _in_line(store, row, pause, crew, within, known)


def _ended(row: asyncpg.Record, status: State) -> Why:
    at: datetime | None = row["completed_at"]
    when = f" at {instant(at)}, {length(row['now'] - at)} ago" if at else ""
    took = ""
    if at and row["started_at"] and status is State.COMPLETED:
        took = f", after {length(at - row['started_at'])}"
    error = f": {_short(row['last_error'])}" if row["last_error"] else ""
    attempts = f" after {row['attempts']} of {row['max_attempts']} attempts"
    match status:
        case State.COMPLETED:
            sentence = f"It completed{when}{took}."
        case State.FAILED:
            sentence = f"It failed{attempts}{when}{error}"
        case _:
            sentence = f"It was cancelled{when}{error}"
    return Why(
        reason=Reason(str(status)),
        sentence=sentence.rstrip(".") + ".",
        job_type=row["job_type"],
        job_id=row["id"],
        worker_id=row["worker_id"],
    )


def _held(row: asyncpg.Record, status: State) -> Why:
    since: datetime = row["started_at"] or row["claimed_at"]
    worker, now = row["worker_id"], row["now"]
    known: dict[str, Any] = {
        "job_type": row["job_type"],
        "job_id": row["id"],
        "worker_id": worker,
    }
    beat_at: datetime | None = row["beat_at"]
    if beat_at is not None and now - beat_at > row["silent_after"]:
        return Why(
            reason=Reason.WORKER_SILENT,
            sentence=f"Its worker {worker} has been silent for {length(now - beat_at)}. Any other "
            "worker takes the job from it within a second or so; `howdah recover` does it too.",
            **known,
        )
    if status is State.CLAIMED:
        sentence = f"Worker {worker} claimed it {length(now - since)} ago and has not started it."
        return Why(reason=Reason.CLAIMED, sentence=sentence, **known)
    stage = f", {row['current_stage']}" if row["current_stage"] else ""
    done = f": {row['progress']}%{stage}" if row["progress"] or stage else ""
    return Why(
        reason=Reason.RUNNING,
        sentence=f"It has been running on {worker} for {length(now - since)}, "
        f"attempt {row['attempts']} of {row['max_attempts']}{done}.{_holding(row)}",
        **known,
    )


def _holding(row: asyncpg.Record) -> str:
    """Say so where nothing but one handler can run in its worker."""
    held_up = read_held_up(row["held_up"])
    if held_up is None or not held_up.now:
        return ""
    who = some(held_up.types) if held_up.types else "a handler"
    return (
        f" No thread of that worker could run for {length(timedelta(seconds=held_up.seconds))}: "
        f'{who} holds the GIL, and should be registered with run="process".'
    )


def _unread(row: asyncpg.Record, known: dict[str, Any]) -> Why:
    """Say who could not read it, and how long it waits for somebody who can."""
    until: datetime = row["unread_until"]
    said = _short(row["last_error"] or "a worker cannot read its payload")
    return Why(
        reason=Reason.UNREAD,
        sentence=f"{said[0].upper()}{said[1:]}. It was first handed back "
        f"{length(row['now'] - row['unread_since'])} ago and waits for a worker that can read it, "
        f"until {instant(until)}.",
        until=until,
        **known,
    )


def _not_in_line(row: asyncpg.Record, pause: Paused | None, known: dict[str, Any]) -> Why:
    due: datetime = row["run_at"] or row["created_at"]
    now = row["now"]
    if now - due > UPKEEP:
        return Why(
            reason=Reason.NOBODY_PROMOTES,
            sentence=f"It has been due for {length(now - due)}, and it has not joined the line, "
            "because no worker is running. Start one.",
            until=due,
            **known,
        )
    then = f"{instant(due)}, in {length(due - now)}"
    also = f" Its type is paused, too: `howdah resume {row['job_type']}`." if pause else ""
    if row["attempts"] and row["last_error"]:
        return Why(
            reason=Reason.WAITING_FOR_RETRY,
            sentence=f"Attempt {row['attempts']} of {row['max_attempts']} failed "
            f"({_short(row['last_error'])}); it is tried again at {then}.{also}",
            until=due,
            paused=pause,
            **known,
        )
    return Why(
        reason=Reason.NOT_DUE,
        sentence=f"It is not due before {then}.{also}",
        until=due,
        paused=pause,
        **known,
    )


class _Crew(msgspec.Struct, frozen=True):
    """The live workers that know a type."""

    members: list[Listener]
    busy_with: dict[str, int]
    job_type: str

    @classmethod
    async def of(cls, store: Store, job_type: str, within: timedelta) -> _Crew:
        alive = await listeners(store, within)
        members = [one for one in alive if job_type in one.job_types]
        rows = await query.fetch(
            store,
            within,
            "select job_type, count(*) from (select job_type from howdah.jobs_live "
            "where worker_id = any ($1) limit $2) as held group by 1",
            [one.id for one in members],
            CAP,
        )
        return cls(members, {row[0]: row[1] for row in rows}, job_type)

    @property
    def slots(self) -> int:
        return sum(one.places_of(self.job_type)[0] for one in self.members)

    @property
    def busy(self) -> int:
        return sum(one.places_of(self.job_type)[1] for one in self.members)

    @property
    def places(self) -> str:
        """What a job of this type waits for, where workers know it."""
        in_threads = any(self.job_type in one.thread_types for one in self.members)
        return "threads" if in_threads else "slots"

    @property
    def types(self) -> list[str]:
        return sorted({name for one in self.members for name in one.job_types})

    @property
    def full(self) -> bool:
        return bool(self.slots) and self.busy >= self.slots

    def facts(self) -> dict[str, Any]:
        return {
            "listeners": [one.id for one in self.members],
            "slots": self.slots,
            "busy": self.busy,
            "busy_with": self.busy_with,
        }


async def _in_line(
    store: Store,
    row: asyncpg.Record,
    pause: Paused | None,
    crew: _Crew,
    within: timedelta,
    known: dict[str, Any],
) -> Why:
    job_type = row["job_type"]
    if (blocked := _blocked(job_type, pause, crew, known)) is not None:
        return blocked
    ahead = await query.fetch(
        store,
        within,
        "select coalesce(sum(higher), 0)::int, coalesce(sum(older), 0)::int, "
        "coalesce(bool_or(higher + older >= $5), false) "
        "from howdah.jobs_ahead($1, $2, $3, $4, $5)",
        crew.types,
        row["priority"],
        row["ready_at"],
        row["id"],
        CAP,
    )
    higher, older, more = ahead[0]
    known |= crew.facts() | {
        "ahead_higher": Count(higher, more and bool(higher)),
        "ahead_older": Count(older, more and bool(older)),
    }
    first = _who_goes_first(Count(higher, more), Count(older, more))
    workers = _workers(crew)
    if crew.full:
        return Why(
            reason=Reason.SLOTS_BUSY,
            sentence=f"All {crew.slots:,} {crew.places} of {workers} that {_know(crew)} {job_type} "
            f"are busy ({amounts(crew.busy_with)}){', and ' + first if first else ''}.",
            **known,
        )
    if first:
        return Why(
            reason=Reason.BEHIND,
            sentence=f"{first[0].upper()}{first[1:]}; {workers} {_know(crew)} {job_type}.",
            **known,
        )
    return Why(
        reason=Reason.READY,
        sentence=f"It is the next to be claimed: {workers} {_know(crew)} {job_type} and "
        f"{'has' if len(crew.members) == 1 else 'have'} free {crew.places}.",
        **known,
    )


def _blocked(job_type: str, pause: Paused | None, crew: _Crew, known: dict[str, Any]) -> Why | None:
    """Say what keeps every job of a type from being claimed."""
    if pause is not None:
        said = f": {_short(pause.reason)}" if pause.reason else ""
        return Why(
            reason=Reason.PAUSED,
            sentence=f"Its type {job_type} is paused since {instant(pause.paused_at)}, by "
            f"{pause.paused_by}{said}. `howdah resume {job_type}` lets it go on.",
            paused=pause,
            **known,
        )
    if not crew.members:
        return Why(
            reason=Reason.NOBODY_LISTENS,
            sentence=f"No live worker knows the type {job_type}. Start one that does. Foreign "
            "workers, which claim with plain SQL and never beat, are not counted here.",
            **known,
        )
    return None


def _who_goes_first(higher: Count, older: Count) -> str:
    parts = [
        f"{count} {word}"
        for count, word in ((higher, "of higher priority"), (older, "older"))
        if count
    ]
    if not parts:
        return ""
    total = Count(higher.jobs + older.jobs, higher.more or older.more)
    goes = "goes" if total.jobs == 1 else "go"
    if len(parts) == 1:
        count, word = (higher, "of higher priority") if higher else (older, "of the same priority")
        return f"{jobs(count)} {word} {goes} first"
    return f"{jobs(total)} {goes} first ({', '.join(parts)})"


def _workers(crew: _Crew) -> str:
    if len(crew.members) == 1:
        return f"the worker {crew.members[0].id}"
    return f"the {len(crew.members)} workers ({some([one.id for one in crew.members])})"


def _know(crew: _Crew) -> str:
    return "knows" if len(crew.members) == 1 else "know"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:199]}…"


async def why_type(store: Store, job_type: str, *, within: timedelta = query.WITHIN) -> Why:
    """Say why jobs of a type wait; told of the first in its line."""
    rows = await query.fetch(
        store,
        within,
        "select id from howdah.jobs_live where job_type = $1 and worker_id is null "
        "and ready_at is not null order by ~priority, ready_at, id limit 1",
        job_type,
    )
    if rows:
        try:
            return await why(store, rows[0][0], within=within)
        except JobNotFound:  # it went on while we looked
            pass
    known: dict[str, Any] = {"job_type": job_type}
    pause = (await paused(store, within=within)).get(job_type)
    crew = await _Crew.of(store, job_type, within)
    if (blocked := _blocked(job_type, pause, crew, known)) is not None:
        return blocked
    return Why(
        reason=Reason.IDLE,
        sentence=f"No job of the type {job_type} stands in line; {_workers(crew)} {_know(crew)} "
        f"it and {crew.busy:,} of {crew.slots:,} {crew.places} are busy.",
        **known | crew.facts(),
    )
