"""Stories that Hypothesis writes: verbs and plain SQL in any order, against a model in Python.

The model has a dozen fields per job and knows the answer of each step. After every step, the rows
are compared with the model, and queue_depth with the rows. Leases are right, old, another worker's
or from the future. The guard refuses unlisted moves. Combinations that chance seldom produces are
chosen directly: every verb with every state and every kind of lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import product
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,  # pyright: ignore[reportUnknownVariableType]
)

from howdah.states import State
from tests.support import Claimed, Database

pytestmark = pytest.mark.engine

TYPES = ("mail", "resize", "index")
WORKERS = ("first", "second", "third")
TIMEOUT = 5  # minutes, for a worker that never beat
SILENT_AFTER = 2  # minutes, for one that did
LIVE = (State.PENDING, State.CLAIMED, State.RUNNING)

types = st.sampled_from(TYPES)
workers = st.sampled_from(WORKERS)
priorities = st.sampled_from([30, 100, 150, -5])
minutes = st.integers(1, 6)
limits = st.integers(1, 3)


def length(minutes: int) -> timedelta:
    return timedelta(minutes=minutes)


@dataclass
class ModelJob:
    """A job as the model sees it."""

    id: UUID
    job_type: str
    priority: int
    max_attempts: int
    due: int | None = None  # the minute at which it may run; None: it is in line
    ready_at: Any = None  # its place in line, read from the database when it enters the line
    state: State = State.PENDING
    attempts: int = 0
    worker: str | None = None
    claimed: int = 0
    progress: int = 0
    events: int = 0
    errors: int = 0

    @property
    def held(self) -> bool:
        return self.state in (State.CLAIMED, State.RUNNING)

    @property
    def last(self) -> bool:
        return self.attempts >= self.max_attempts

    @property
    def rank(self) -> tuple[int, Any, UUID]:
        return (-self.priority, self.ready_at, self.id)


@dataclass
class Model:
    jobs: dict[UUID, ModelJob] = field(default_factory=dict[UUID, ModelJob])
    leases: list[Claimed] = field(default_factory=list[Claimed])
    beats: dict[str, int] = field(default_factory=dict[str, int])
    minute: int = 0

    def held_job(self, lease: Claimed) -> ModelJob | None:
        """Return the job if this lease still holds it."""
        job = self.jobs[lease.id]
        current = job.held and (job.worker, job.attempts) == (lease.worker_id, lease.attempts)
        return job if current else None

    def jobs_in_line(self, job_types: set[str]) -> list[ModelJob]:
        ready = (
            job
            for job in self.jobs.values()
            if job.state is State.PENDING and job.due is None and job.job_type in job_types
        )
        return sorted(ready, key=lambda job: job.rank)


LEASES = ("right", "old", "another's", "of a later attempt")
FENCED = ("start", "progress", "emit", "complete", "retry", "fail", "release")
COMBINATIONS = {
    *product([*FENCED, "cancel by its worker"], State, LEASES[1:]),
    *product([*FENCED, "cancel by its worker"], [State.CLAIMED, State.RUNNING], LEASES[:1]),
    *product(["claim", "cancel", "requeue", "promote", "recover"], State, ["none"]),
    *product(["plain recover"], State, ["none"]),
}
Combination = tuple[str, State, str]  # verb, state, lease


T = TypeVar("T")


class FixedChoices(dict[str, object]):
    """Replaces random choices by fixed ones, by the name of the choice."""


Data: TypeAlias = st.DataObject | FixedChoices


def pick(data: Data, options: Sequence[T], name: str) -> T:
    if isinstance(data, FixedChoices):
        return next(option for option in options if option == data.get(name, option))
    return data.draw(st.sampled_from(options), name)


class Stories(RuleBasedStateMachine):
    def __init__(self, db: Database) -> None:
        super().__init__()
        self.db = db
        self.seen: set[Combination] = set()
        self.model = Model()
        db.execute("truncate jobs, workers, finished_counts, job_events, guard.leaving")
        db.clock.advance(-db.clock.offset)

    @initialize()
    def begin_with_a_job_in_every_state(self) -> None:
        """Each is on its second attempt, so there is an old lease too. The pending job is last."""
        for state in reversed(State):
            job = self.add_job(ModelJob(self.db.enqueue("mail", max_attempts=4), "mail", 100, 4))
            claims: list[Claimed] = []
            for job.attempts in (1, 2):
                claims = self.db.claim("mail", worker="first")
                assert [(c.id, c.attempts) for c in claims] == [(job.id, job.attempts)]
                self.model.leases += claims
                if job.attempts == 1 or state is State.PENDING:
                    self.db.retry(claims)
                    job.errors += 1
            job.state, job.worker = state, None if state is State.PENDING else "first"
            match state:
                case State.PENDING:
                    self.enter_line(job)
                case State.CLAIMED:
                    pass
                case State.RUNNING:
                    self.db.start(claims)
                case State.COMPLETED:
                    self.db.complete(claims)
                    job.progress = 100
                case State.FAILED:
                    self.db.fail(claims)
                    job.errors += 1
                case State.CANCELLED:
                    self.db.cancel(job.id)
                    job.errors += 1

    # ── enqueue ──

    @rule(job_type=types, priority=priorities, limit=limits)
    def enqueue(self, job_type: str, priority: int, limit: int) -> None:
        job = self.db.enqueue(job_type, priority=priority, max_attempts=limit)
        self.enter_line(self.add_job(ModelJob(job, job_type, priority, limit)))

    @rule(job_type=types, delay=minutes)
    def enqueue_for_later(self, job_type: str, delay: int) -> None:
        job = self.db.enqueue(job_type, delay=length(delay))
        self.add_job(ModelJob(job, job_type, 100, 3, due=self.model.minute + delay))

    @rule(job_type=types, priority=priorities)
    def insert(self, job_type: str, priority: int) -> None:
        job = self.db.value(
            "insert into jobs (job_type, priority) values (%s, %s) returning id",
            job_type,
            priority,
        )
        self.enter_line(self.add_job(ModelJob(job, job_type, priority, 3)))

    # ── claim, run ──

    @rule(job_types=st.sets(types, min_size=1), worker=workers, batch=st.integers(1, 4))
    def claim(self, job_types: set[str], worker: str, batch: int) -> None:
        self.record_all("claim", lambda job: job.job_type in job_types)
        expected = self.model.jobs_in_line(job_types)[:batch]
        claims = self.db.claim(*job_types, worker=worker, batch=batch)
        assert [claim.id for claim in claims] == [job.id for job in expected]
        for claim, job in zip(claims, expected, strict=True):
            job.state, job.worker, job.claimed = State.CLAIMED, worker, self.model.minute
            job.attempts += 1
            assert claim.attempts == job.attempts
        self.model.leases += claims

    def some_lease(self, data: Data, verb: str) -> tuple[Claimed, ModelJob | None]:
        """Draw a lease of any kind, of a job in any state; return also the job if it is held.

        The state is drawn before the job, so that states with few jobs are drawn as often.
        """
        leased = [self.model.jobs[id] for id in dict.fromkeys(c.id for c in self.model.leases)]
        states = [state for state in State if any(job.state is state for job in leased)]
        state = pick(data, states, "state")
        job = pick(data, [job for job in leased if job.state is state], "job")
        leases_of_job = [lease for lease in self.model.leases if lease.id == job.id]
        kind = pick(data, LEASES, "lease")
        lease = leases_of_job[-1]
        if kind == "old" and len(leases_of_job) > 1:
            lease = leases_of_job[0]
        elif kind == "another's":
            lease = lease.by("another worker")
        elif kind == "of a later attempt":
            lease = lease._replace(attempts=lease.attempts + 1)
        holder = self.model.held_job(lease)
        if holder is not None:
            kind = "right"
        elif kind == "right":
            kind = "old"
        self.seen.add((verb, state, kind))
        return lease, holder

    def call_with_lease(
        self, data: Data, verb: str, call: Callable[[list[Claimed]], set[UUID]]
    ) -> ModelJob | None:
        """Call a verb with some lease; return the job if it was the right lease."""
        lease, holder = self.some_lease(data, verb)
        assert call([lease]) == ({lease.id} if holder else set())
        return holder

    def has_leases(self) -> bool:
        return bool(self.model.leases)

    @precondition(has_leases)
    @rule(data=st.data())
    def start(self, data: Data) -> None:
        lease, holder = self.some_lease(data, "start")
        starts = holder is not None and holder.state is State.CLAIMED
        assert self.db.start([lease]) == ({lease.id} if starts else set())
        if holder is not None:
            holder.state = State.RUNNING

    @precondition(has_leases)
    @rule(data=st.data(), percent=st.integers(0, 100))
    def progress(self, data: Data, percent: int) -> None:
        if job := self.call_with_lease(
            data, "progress", lambda leases: self.db.progress(leases, percent)
        ):
            job.progress = percent

    @precondition(has_leases)
    @rule(data=st.data())
    def emit(self, data: Data) -> None:
        if job := self.call_with_lease(data, "emit", lambda leases: self.db.emit(leases, "news")):
            job.events += 1

    @rule(worker=workers)
    def beat(self, worker: str) -> None:
        held = [lease for lease in self.model.leases if lease.worker_id == worker]
        lost = {lease.id for lease in held if self.model.held_job(lease) is None}
        # a job may have been claimed twice by one worker: lost once and held once
        assert self.db.beat(worker, held, length(SILENT_AFTER)) == lost
        self.model.beats[worker] = self.model.minute

    # ── settle ──

    @precondition(has_leases)
    @rule(data=st.data())
    def complete(self, data: Data) -> None:
        if job := self.call_with_lease(data, "complete", self.db.complete):
            job.state, job.progress = State.COMPLETED, 100

    @precondition(has_leases)
    @rule(data=st.data(), delay=st.none() | minutes)
    def retry(self, data: Data, delay: int | None) -> None:
        later = None if delay is None else length(delay)
        if job := self.call_with_lease(
            data, "retry", lambda leases: set(self.db.retry(leases, delay=later))
        ):
            job.errors += 1
            if job.last:
                job.state = State.FAILED
            else:
                self.return_to_pending(job, delay)

    @precondition(has_leases)
    @rule(data=st.data())
    def fail(self, data: Data) -> None:
        if job := self.call_with_lease(data, "fail", self.db.fail):
            job.state = State.FAILED
            job.errors += 1

    @precondition(has_leases)
    @rule(data=st.data(), delay=st.none() | minutes)
    def release(self, data: Data, delay: int | None) -> None:
        later = None if delay is None else length(delay)
        if job := self.call_with_lease(
            data, "release", lambda leases: self.db.release(leases, later)
        ):
            job.attempts -= 1
            self.return_to_pending(job, delay)

    @precondition(has_leases)
    @rule(data=st.data())
    def cancel_held(self, data: Data) -> None:
        if job := self.call_with_lease(data, "cancel by its worker", self.db.cancel_held):
            job.state = State.CANCELLED
            job.errors += 1

    def has_jobs(self) -> bool:
        return bool(self.model.jobs)

    def some_job(self, data: Data, verb: str) -> ModelJob:
        jobs = list(self.model.jobs.values())
        states = [state for state in State if any(job.state is state for job in jobs)]
        state = pick(data, states, "state")
        self.seen.add((verb, state, "none"))
        return pick(data, [job for job in jobs if job.state is state], "job")

    @precondition(has_jobs)
    @rule(data=st.data())
    def cancel(self, data: Data) -> None:
        job = self.some_job(data, "cancel")
        assert self.db.cancel(job.id) == ({job.id} if job.state in LIVE else set())
        if job.state in LIVE:
            job.errors += job.held
            job.state = State.CANCELLED

    # ── upkeep ──

    @precondition(has_jobs)
    @rule(data=st.data(), attempts=st.integers(1, 2))
    def requeue(self, data: Data, attempts: int) -> None:
        job = self.some_job(data, "requeue")
        again = job.state in (State.FAILED, State.CANCELLED)
        assert self.db.requeue(job.id, attempts=attempts) == ({job.id} if again else set())
        if again:
            job.max_attempts = job.attempts + attempts
            job.progress = 0
            self.return_to_pending(job, None)

    @rule(by=minutes)
    def advance_the_clock(self, by: int) -> None:
        self.db.clock.advance(length(by))
        self.model.minute += by

    @rule()
    def promote(self) -> None:
        self.record_all("promote")
        due = {
            job.id
            for job in self.model.jobs.values()
            if job.state is State.PENDING and job.due is not None and job.due <= self.model.minute
        }
        assert self.db.promote() == due
        for id in due:
            self.enter_line(self.model.jobs[id])

    @rule()
    def recover(self) -> None:
        self.record_all("recover")
        stale = [job for job in self.model.jobs.values() if job.held and self.is_silent(job)]
        moved = {job.id: State.FAILED if job.last else State.PENDING for job in stale}
        assert self.db.recover_stale_jobs(length(TIMEOUT)) == moved
        for job in stale:
            job.errors += 1
            if job.last:
                job.state = State.FAILED
            else:
                self.return_to_pending(job, None)

    def is_silent(self, job: ModelJob) -> bool:
        assert job.worker
        if job.worker in self.model.beats:
            return self.model.minute - self.model.beats[job.worker] >= SILENT_AFTER
        return self.model.minute - job.claimed >= TIMEOUT

    # ── plain SQL of a foreign worker ──

    def has_held_jobs(self) -> bool:
        return any(job.held for job in self.model.jobs.values())

    def some_held_job(self, data: Data) -> ModelJob:
        return pick(data, [job for job in self.model.jobs.values() if job.held], "held job")

    @precondition(has_held_jobs)
    @rule(data=st.data())
    def plain_complete(self, data: Data) -> None:
        job = self.some_held_job(data)
        updated = self.db.execute(
            "update jobs set status='completed', progress=100, completed_at=now() where id=%s",
            job.id,
        )
        assert updated == 1
        job.state, job.progress = State.COMPLETED, 100

    @precondition(has_held_jobs)
    @rule(data=st.data())
    def plain_fail(self, data: Data) -> None:
        job = self.some_held_job(data)
        updated = self.db.execute(
            "update jobs set status = case when attempts >= max_attempts then 'failed' "
            "else 'pending' end, last_error=%s, worker_id=null, claimed_at=null where id=%s",
            "a foreign error",
            job.id,
        )
        assert updated == 1
        if job.last:
            job.state, job.worker = State.FAILED, None
        else:
            self.return_to_pending(job, None)

    @rule()
    def plain_recover(self) -> None:
        self.record_all("plain recover")
        stale = [
            job
            for job in self.model.jobs.values()
            if job.held and not job.last and self.model.minute - job.claimed >= TIMEOUT
        ]
        updated = self.db.execute(
            "update jobs set status='pending', worker_id=null, claimed_at=null "
            "where status in ('claimed','running') "
            "and claimed_at < howdah.clock() - %s::interval and attempts < max_attempts",
            length(TIMEOUT),
        )
        assert updated == len(stale)
        for job in stale:
            self.return_to_pending(job, None)

    # ── seen combinations ──

    def record_all(self, verb: str, include: Callable[[ModelJob], bool] = lambda job: True) -> None:
        """Record that a verb without job ids was called while these jobs existed."""
        self.seen |= {(verb, job.state, "none") for job in self.model.jobs.values() if include(job)}

    # ── changes of the model ──

    def add_job(self, job: ModelJob) -> ModelJob:
        self.model.jobs[job.id] = job
        return job

    def return_to_pending(self, job: ModelJob, delay: int | None) -> None:
        job.state, job.worker = State.PENDING, None
        if delay is None:
            self.enter_line(job)
        else:
            job.due, job.ready_at = self.model.minute + delay, None

    def enter_line(self, job: ModelJob) -> None:
        job.due = None
        job.ready_at = self.db.value("select ready_at from jobs_live where id = %s", job.id)
        assert job.ready_at is not None

    # ── checks after every step ──

    @invariant()
    def rows_equal_the_model(self) -> None:
        rows = self.db.rows(
            "select id, job_type, priority, status, worker_id, attempts, max_attempts, progress, "
            "events_count, jsonb_array_length(errors) as errors, "
            "status = 'pending' and ready_at is null as waits, "
            "(claimed_at is not null) as claimed, (completed_at is not null) as completed from jobs"
        )
        assert len(rows) == len(self.model.jobs)
        for row in rows:
            job = self.model.jobs[row["id"]]
            held = job.worker if job.held else row["worker_id"]
            assert row == {
                "id": job.id,
                "job_type": job.job_type,
                "priority": job.priority,
                "status": str(job.state),
                "worker_id": None if job.state is State.PENDING else held,
                "attempts": job.attempts,
                "max_attempts": job.max_attempts,
                "progress": job.progress,
                "events_count": job.events,
                "errors": job.errors,
                "waits": job.state is State.PENDING and job.due is not None,
                "claimed": job.held if job.state in LIVE else row["claimed"],
                "completed": job.state.finished,
            }

    @invariant()
    def events_are_numbered_without_gaps(self) -> None:
        rows = self.db.rows(
            "select job_id, array_agg(number order by number) as numbers from job_events group by 1"
        )
        numbers = {row["job_id"]: row["numbers"] for row in rows}
        assert numbers == {
            job.id: list(range(1, job.events + 1)) for job in self.model.jobs.values() if job.events
        }

    @invariant()
    def queue_depth_equals_the_rows(self) -> None:
        assert self.db.depth() == self.db.counted()


@pytest.mark.slow
def test_every_story_agrees_with_the_model(db: Database) -> None:
    class StoriesOnDatabase(Stories):
        def __init__(self) -> None:
            super().__init__(db)

    run_state_machine_as_test(
        StoriesOnDatabase,
        settings=settings(
            max_examples=60,
            stateful_step_count=40,
            derandomize=True,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )


CALLS: dict[str, Callable[[Stories, FixedChoices], None]] = {
    "start": lambda story, chosen: story.start(data=chosen),
    "progress": lambda story, chosen: story.progress(data=chosen, percent=50),
    "emit": lambda story, chosen: story.emit(data=chosen),
    "complete": lambda story, chosen: story.complete(data=chosen),
    "retry": lambda story, chosen: story.retry(data=chosen, delay=None),
    "fail": lambda story, chosen: story.fail(data=chosen),
    "release": lambda story, chosen: story.release(data=chosen, delay=None),
    "cancel by its worker": lambda story, chosen: story.cancel_held(data=chosen),
    "cancel": lambda story, chosen: story.cancel(data=chosen),
    "requeue": lambda story, chosen: story.requeue(data=chosen, attempts=1),
    "claim": lambda story, chosen: story.claim(job_types={"mail"}, worker="second", batch=4),
    "promote": lambda story, chosen: story.promote(),
    "recover": lambda story, chosen: story.recover(),
    "plain recover": lambda story, chosen: story.plain_recover(),
}


@pytest.mark.parametrize("verb", CALLS)
@pytest.mark.slow
def test_every_verb_is_tested_with_every_state_and_kind_of_lease(db: Database, verb: str) -> None:
    seen: set[Combination] = set()
    expected = {combination for combination in COMBINATIONS if combination[0] == verb}
    for _, state, lease in sorted(expected):
        for minutes in (0, 2 * TIMEOUT):  # before and long after the timeout of the holder
            story = Stories(db)
            story.begin_with_a_job_in_every_state()
            story.advance_the_clock(by=minutes)
            CALLS[verb](story, FixedChoices(state=state, lease=lease))
            story.rows_equal_the_model()
            story.events_are_numbered_without_gaps()
            story.queue_depth_equals_the_rows()
            seen |= story.seen
    assert seen == expected
    assert {call for call, _, _ in COMBINATIONS} == set(CALLS)
