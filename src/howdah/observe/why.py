"""Why: what a job, or a job type, waits for, as a sentence for people and a word for programs.

The reasons are checked in this order: sleeps or waits for a signal, not due, not admitted, paused,
no worker, no free slot, other jobs go first. The first one that holds is returned: the job would
wait for it in any case.
"""

from __future__ import annotations

import shlex
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from howdah.checks.queue_names import DEFAULT_QUEUE
from howdah.errors import JobNotFound
from howdah.observe.count import CAP, Count
from howdah.observe.paused import Paused, paused
from howdah.observe.steps import Step, blocking, sentence_of
from howdah.observe.waits_for_slot import first_waiting, waits_for_slot
from howdah.observe.workers import LiveWorker, live_workers, read_held_up
from howdah.states import State
from howdah.store import Store, query
from howdah.text.wording import amounts, instant, jobs, length, shorten, some

UNPROMOTED = timedelta(seconds=10)  # a due job joins the line within this time if a worker runs


class Reason(StrEnum):
    """Why, as a word for programs."""

    NOT_DUE = "not_due"
    WAITING_FOR_RETRY = "waiting_for_retry"
    SLEEPING = "sleeping"  # its handler called ctx.sleep
    WAITING_FOR_SIGNAL = "waiting_for_signal"  # its handler called ctx.wait_for
    EXPIRED = "expired"  # it has not started in time, and upkeep has not cancelled it yet
    UNREAD = "unread"  # the workers that met it cannot read its payload
    PAUSED = "paused"
    NO_WORKER = "no_worker"  # no live worker knows the type
    NO_UPKEEP = "no_upkeep"  # it is due, and no worker runs that moves it to the line
    SLOTS_BUSY = "slots_busy"
    WAITING_FOR_KEY = "waiting_for_key"  # all slots of its key are taken
    WAITING_FOR_LIMIT = "waiting_for_limit"  # its named limit lets in no more at the moment
    NOT_NEXT = "not_next"  # other jobs go first
    READY = "ready"  # it is the next to be claimed
    CLAIMED = "claimed"
    RUNNING = "running"
    WORKER_SILENT = "worker_silent"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    IDLE = "idle"  # of a type: nothing waits

    @property
    def needs_a_person(self) -> bool:
        """Whether the job waits until a person acts."""
        return self in _NEED_A_PERSON


_NEED_A_PERSON = {
    Reason.UNREAD,
    Reason.PAUSED,
    Reason.NO_WORKER,
    Reason.NO_UPKEEP,
    Reason.FAILED,
    Reason.CANCELLED,
}


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job, or a job type, waits."""

    reason: Reason
    sentence: str
    job_type: str
    job_id: UUID | None = None
    expires_at: datetime | None = None  # no attempt begins after it
    until: datetime | None = None  # how long it is not due, sleeps, waits, or stays unread
    signals: list[str] = msgspec.field(default_factory=list[str])  # that it waits for
    worker_id: str | None = None  # the worker that holds it
    workers: list[str] = msgspec.field(default_factory=list[str])  # live workers of the type
    slots: int = 0  # of these workers
    busy: int = 0
    busy_with: dict[str, int] = msgspec.field(default_factory=dict[str, int])  # jobs by type
    ahead_higher: Count = Count()  # jobs of a higher priority that these workers claim first
    ahead_older: Count = Count()  # older jobs of the same priority
    paused: Paused | None = None

    @property
    def needs_a_person(self) -> bool:
        return self.reason.needs_a_person


async def why(
    store: Store, id: UUID, *, within: timedelta = query.WITHIN, key_as: str | None = None
) -> Why:
    """Explain why a job is in its state; raises JobNotFound.

    The sentence has `key_as` instead of the job's key, if it is given.
    """
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
        raise JobNotFound.with_id(id)
    row = rows[0]
    status = State(row["status"])
    if status.finished:
        return _ended(row, status)
    if status is not State.PENDING:
        return _held(row, status)
    known: dict[str, Any] = {"job_type": row["job_type"], "job_id": id}
    expires_at: datetime | None = row["expires_at"]
    if expires_at is None:
        return await _pending(store, row, within, key_as, known)
    if expires_at <= row["now"]:
        return _expired(row, expires_at, known)
    waits = await _pending(store, row, within, key_as, known)
    return msgspec.structs.replace(
        waits,
        expires_at=expires_at,
        sentence=f"{waits.sentence} It is cancelled if it has not started by "
        f"{instant(expires_at)}, in {length(expires_at - row['now'])}.",
    )


async def _pending(
    store: Store,
    row: asyncpg.Record,
    within: timedelta,
    key_as: str | None,
    known: dict[str, Any],
) -> Why:
    if row["unread_since"] is not None:
        return _unread(row, known)
    pause = (await paused(store, within=within)).get(row["job_type"])
    if row["ready_at"] is None and (waits := await blocking(store, row["id"], within)):
        return _suspended(row, waits, pause, known)
    if (sentence := await waits_for_slot(store, row, within, key_as)) is not None:
        of_key = row["admission"] == "slot"
        reason = Reason.WAITING_FOR_KEY if of_key else Reason.WAITING_FOR_LIMIT
        return Why(reason=reason, sentence=sentence, paused=pause, **known)
    if row["ready_at"] is None:
        return _not_in_line(row, pause, known)
    candidates = await _Candidates.of(store, row["job_type"], within)
    return await _in_line(store, row, pause, candidates, within, known)


def _suspended(
    row: asyncpg.Record, waits: list[Step], pause: Paused | None, known: dict[str, Any]
) -> Why:
    """Explain which signals a job waits for, and until when it sleeps."""
    signals = [step.key.name for step in waits if step.key.kind == "signal"]
    hint = f" `howdah signal {row['id']} {shlex.quote(signals[0])}` sends it." if signals else ""
    return Why(
        reason=Reason.WAITING_FOR_SIGNAL if signals else Reason.SLEEPING,
        sentence=f"{sentence_of(waits, row['now'])}{hint}",
        until=min((step.until for step in waits if step.until is not None), default=None),
        signals=signals,
        paused=pause,
        **known,
    )


def _expired(row: asyncpg.Record, expires_at: datetime, known: dict[str, Any]) -> Why:
    ago = length(row["now"] - expires_at)
    return Why(
        reason=Reason.EXPIRED,
        sentence=f"It expired at {instant(expires_at)}, {ago} ago: no worker claims it, and any "
        "worker that runs cancels it within seconds.",
        expires_at=expires_at,
        **known,
    )


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
            sentence=f"Its worker {worker} has been silent for {length(now - beat_at)}. Another "
            "live worker recovers the job within seconds; `howdah recover` does it too.",
            **known,
        )
    if status is State.CLAIMED:
        holding = _holding(row)  # then its start is perhaps not written yet
        sentence = (
            f"Worker {worker} claimed it {length(now - since)} ago and has not "
            f"{'reported its start' if holding else 'started it'}.{holding}"
        )
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
    """Add that a handler in the job's worker holds the GIL, if one does."""
    held_up = read_held_up(row["held_up"])
    if held_up is None or not held_up.now:
        return ""
    who = some(held_up.types) if held_up.types else "a handler"
    return (
        f" No thread of that worker could run for {length(timedelta(seconds=held_up.seconds))}: "
        f'{who} holds the GIL, and should be registered with run="process".'
    )


def _unread(row: asyncpg.Record, known: dict[str, Any]) -> Why:
    """Explain that no worker could read the payload, and until when it waits for one."""
    until: datetime = row["unread_until"]
    problem = _short(row["last_error"] or "a worker cannot read its payload")
    return Why(
        reason=Reason.UNREAD,
        sentence=f"{problem[0].upper()}{problem[1:]}. It was first handed back "
        f"{length(row['now'] - row['unread_since'])} ago and waits for a worker that can read it, "
        f"until {instant(until)}.",
        until=until,
        **known,
    )


def _not_in_line(row: asyncpg.Record, pause: Paused | None, known: dict[str, Any]) -> Why:
    due: datetime = row["run_at"] or row["created_at"]
    now = row["now"]
    if now - due > UNPROMOTED:
        return Why(
            reason=Reason.NO_UPKEEP,
            sentence=f"It has been due for {length(now - due)}, and it has not joined the line, "
            "because no worker runs. Start one.",
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


class _Candidates(msgspec.Struct, frozen=True):
    """The live workers that know a job type, and so may claim it."""

    workers: list[LiveWorker]
    busy_with: dict[str, int]
    job_type: str
    queue: str | None  # None: the type is not registered

    @classmethod
    async def of(cls, store: Store, job_type: str, within: timedelta) -> _Candidates:
        live = await live_workers(store, within)
        workers = [worker for worker in live if job_type in worker.job_types]
        rows = await query.fetch(
            store,
            within,
            "select job_type, count(*) from (select job_type from howdah.jobs_live "
            "where held_by = any ($1) limit $2) as held group by 1",
            [worker.id for worker in workers],
            CAP,
        )
        queue = await query.fetchval(
            store, within, "select max(queue) from howdah.job_types where name = $1", job_type
        )
        return cls(workers, {row[0]: row[1] for row in rows}, job_type, queue)

    @property
    def of_queue(self) -> str:
        """The queue of the type, for a sentence; empty for the queue `default`."""
        named = self.queue not in (None, DEFAULT_QUEUE)
        return f", of the queue {self.queue}" if named else ""

    @property
    def slots(self) -> int:
        return sum(worker.slots_for(self.job_type)[0] for worker in self.workers)

    @property
    def busy(self) -> int:
        return sum(worker.slots_for(self.job_type)[1] for worker in self.workers)

    @property
    def slots_word(self) -> str:
        """What a job of this type needs in these workers: slots or threads."""
        in_threads = any(self.job_type in worker.thread_types for worker in self.workers)
        return "threads" if in_threads else "slots"

    @property
    def types(self) -> list[str]:
        return sorted({name for worker in self.workers for name in worker.job_types})

    @property
    def names(self) -> str:
        """The workers, in a sentence."""
        if len(self.workers) == 1:
            return f"the worker {self.workers[0].id}"
        return f"the {len(self.workers)} workers ({some([worker.id for worker in self.workers])})"

    @property
    def know(self) -> str:
        return "knows" if len(self.workers) == 1 else "know"

    @property
    def full(self) -> bool:
        return bool(self.slots) and self.busy >= self.slots

    def facts(self) -> dict[str, Any]:
        return {
            "workers": [worker.id for worker in self.workers],
            "slots": self.slots,
            "busy": self.busy,
            "busy_with": self.busy_with,
        }


async def _in_line(
    store: Store,
    row: asyncpg.Record,
    pause: Paused | None,
    candidates: _Candidates,
    within: timedelta,
    known: dict[str, Any],
) -> Why:
    job_type = row["job_type"]
    if (blocked := _blocked(job_type, pause, candidates, known)) is not None:
        return blocked
    ahead = await query.fetch(
        store,
        within,
        "select coalesce(sum(higher), 0)::int, coalesce(sum(older), 0)::int, "
        "coalesce(bool_or(higher + older >= $5), false) "
        "from howdah.jobs_ahead($1, $2, $3, $4, $5)",
        candidates.types,
        row["priority"],
        row["ready_at"],
        row["id"],
        CAP,
    )
    higher, older, more = ahead[0]
    known |= candidates.facts() | {
        "ahead_higher": Count(higher, more and bool(higher)),
        "ahead_older": Count(older, more and bool(older)),
    }
    first = _who_goes_first(Count(higher, more), Count(older, more))
    workers = candidates.names
    if candidates.full:
        return Why(
            reason=Reason.SLOTS_BUSY,
            sentence=f"All {candidates.slots:,} {candidates.slots_word} of {workers} that "
            f"{candidates.know} {job_type} are busy ({amounts(candidates.busy_with)})"
            f"{', and ' + first if first else ''}.",
            **known,
        )
    if first:
        return Why(
            reason=Reason.NOT_NEXT,
            sentence=f"{first[0].upper()}{first[1:]}; {workers} {candidates.know} {job_type}.",
            **known,
        )
    return Why(
        reason=Reason.READY,
        sentence=f"It is the next to be claimed: {workers} {candidates.know} {job_type} and "
        f"{'has' if len(candidates.workers) == 1 else 'have'} free {candidates.slots_word}.",
        **known,
    )


def _blocked(
    job_type: str, pause: Paused | None, candidates: _Candidates, known: dict[str, Any]
) -> Why | None:
    """Explain what keeps every job of a type from being claimed; None if nothing does."""
    if pause is not None:
        reason = f": {_short(pause.reason)}" if pause.reason else ""
        return Why(
            reason=Reason.PAUSED,
            sentence=f"Its type {job_type} is paused since {instant(pause.paused_at)}, by "
            f"{pause.paused_by}{reason}. `howdah resume {job_type}` resumes it.",
            paused=pause,
            **known,
        )
    if not candidates.workers:
        return Why(
            reason=Reason.NO_WORKER,
            sentence=f"No live worker knows the type {job_type}{candidates.of_queue}. Start one "
            "that does. Foreign workers, which claim with plain SQL and never beat, are not "
            "counted here.",
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


def _short(text: str) -> str:
    return shorten(" ".join(text.split()), 200)


async def why_type(
    store: Store, job_type: str, *, within: timedelta = query.WITHIN, key_as: str | None = None
) -> Why:
    """Explain why jobs of a type wait: the reason of the first job in its line.

    If none stands in line, it is the reason of a job that waits for a slot of its key or its limit.
    """
    rows = await query.fetch(
        store,
        within,
        "select id from howdah.jobs_live where job_type = $1 and held_by is null "
        "and worker_id is null and ready_at is not null order by ~priority, ready_at, id limit 1",
        job_type,
    )
    id = rows[0][0] if rows else await first_waiting(store, job_type, within)
    if id is not None:
        try:
            return await why(store, id, within=within, key_as=key_as)
        except JobNotFound:  # it was deleted in between
            pass
    known: dict[str, Any] = {"job_type": job_type}
    pause = (await paused(store, within=within)).get(job_type)
    candidates = await _Candidates.of(store, job_type, within)
    if (blocked := _blocked(job_type, pause, candidates, known)) is not None:
        return blocked
    return Why(
        reason=Reason.IDLE,
        sentence=f"No job of the type {job_type} stands in line; {candidates.names} "
        f"{candidates.know} it and {candidates.busy:,} of {candidates.slots:,} "
        f"{candidates.slots_word} are busy.",
        **known | candidates.facts(),
    )
