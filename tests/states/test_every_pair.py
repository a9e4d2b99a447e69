"""Every state with every verb: listed moves are made, and nothing else changes anything.

The expected result is read from the table of moves. A call that is not a move must leave the whole
row unchanged, whether its lease is right, old, another worker's or invented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from uuid import UUID, uuid4

import pytest

from howdah.states import MOVES, State, Verb
from tests.support import Claimed, Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)
MOMENT = timedelta(microseconds=1)
YEARS = timedelta(days=3650)
NUMBERS = count(1)


@dataclass(frozen=True)
class Case:
    """A job in a given state, and the lease of its last attempt."""

    job: UUID
    job_type: str
    lease: Claimed


def bring_to(db: Database, stage: str, *, last: bool) -> Case:
    """Create a job and move it to this stage; `last` means that no attempt is left."""
    number = next(NUMBERS)
    job_type, worker = f"type-{number}", f"worker-{number}"
    job = db.enqueue(job_type, max_attempts=1 if last else 5)
    db.execute("update jobs_live set expires_at = clock() + %s where id = %s", YEARS, job)
    claims = db.claim(job_type, worker=worker)
    match stage:
        case "pending":
            db.release(claims) if last else db.retry(claims)
        case "waiting":
            db.release(claims, HOUR) if last else db.retry(claims, delay=HOUR)
        case "claimed":
            pass
        case "running":
            db.start(claims)
        case "completed":
            db.complete(claims)
        case "failed":
            db.fail(claims)
        case "cancelled":
            db.cancel(job)
        case _:
            raise AssertionError(stage)
    assert db.state_of(job) is state_at(stage)
    return Case(job, job_type, claims[0])


def state_at(stage: str) -> State:
    return State.PENDING if stage == "waiting" else State(stage)


STAGES = ("pending", "waiting", "claimed", "running", "completed", "failed", "cancelled")


def expire(db: Database) -> set[UUID]:
    """Expire what has not started, as if the time of all jobs were over."""
    db.clock.advance(2 * YEARS)
    try:
        return db.expire()
    finally:
        db.clock.advance(-2 * YEARS)


CallVerb = Callable[[Database, Case, Claimed], set[UUID]]

# Calls with a lease, and calls without one. The first word of a name is the verb whose moves
# apply.
FENCED: dict[str, CallVerb] = {
    "start": lambda db, case, lease: db.start([lease]),
    "complete": lambda db, case, lease: db.complete([lease]),
    "retry": lambda db, case, lease: set(db.retry([lease])),
    "retry later": lambda db, case, lease: set(db.retry([lease], delay=HOUR)),
    "fail": lambda db, case, lease: db.fail([lease]),
    "release": lambda db, case, lease: db.release([lease]),
    "release later": lambda db, case, lease: db.release([lease], HOUR),
    "hand_back": lambda db, case, lease: db.hand_back([lease]),
    "hand_back as failed": lambda db, case, lease: db.hand_back([lease], signature="the newest"),
    "cancel by its worker": lambda db, case, lease: db.cancel_held([lease]),
}
UNFENCED: dict[str, CallVerb] = {
    "claim": lambda db, case, lease: {c.id for c in db.claim(case.job_type, worker="another")},
    "cancel": lambda db, case, lease: db.cancel(case.job),
    "recover": lambda db, case, lease: set(db.recover_stale_jobs(MOMENT)) & {case.job},
    "requeue": lambda db, case, lease: db.requeue(case.job),
    "expire": lambda db, case, lease: expire(db) & {case.job},
}
REPORTS: dict[str, CallVerb] = {
    "progress": lambda db, case, lease: db.progress([lease], 50, "half way"),
    "emit": lambda db, case, lease: db.emit([lease], "news", {"n": 1}),
}
WRONG_LEASES: dict[str, Callable[[Claimed], Claimed]] = {
    "another worker's": lambda lease: lease.by("another-worker"),
    "an older attempt's": lambda lease: lease._replace(attempts=lease.attempts - 1),
    "a later attempt's": lambda lease: lease._replace(attempts=lease.attempts + 1),
    "of an unknown job": lambda lease: Claimed(uuid4(), lease.worker_id, lease.attempts),
}


def test_the_calls_cover_every_verb_and_every_listed_move() -> None:
    """Uses the same tables as the tests below."""
    assert {call.split()[0] for call in (*FENCED, *UNFENCED)} == {str(verb) for verb in Verb}
    covered = {
        (Verb(call.split()[0]), state_at(stage), target)
        for call in (*FENCED, *UNFENCED)
        for stage in STAGES
        for last in (False, True)
        if (target := target_of(call, stage, last=last)) is not None
    }
    assert covered == MOVES
    assert {state_at(stage) for stage in STAGES} == set(State)


def target_of(call: str, stage: str, *, last: bool) -> State | None:
    """Return the state that the listed moves lead to; None if no move is listed."""
    verb = Verb(call.split()[0])
    if stage == "waiting" and verb is Verb.CLAIM:
        return None  # pending, but not in line yet
    if call == "cancel by its worker" and state_at(stage) is State.PENDING:
        return None  # no worker holds it
    listed = {target for v, source, target in MOVES if (v, source) == (verb, state_at(stage))}
    if listed and verb is Verb.HAND_BACK:
        return State.FAILED if call == "hand_back as failed" else State.PENDING
    if listed == {State.PENDING, State.FAILED}:
        return State.FAILED if last else State.PENDING
    assert len(listed) <= 1, f"{verb} of a {stage} job may lead to {listed}"
    return next(iter(listed), None)


def snapshot(db: Database, case: Case) -> dict[str, object]:
    """Return everything that the database stores about the job."""
    events = db.rows("select * from job_events where job_id = %s order by number", case.job)
    return {"row": db.job(case.job), "events": events, "depth": depth_of(db, case)}


def depth_of(db: Database, case: Case) -> dict[State, int]:
    return {state: n for (job_type, state), n in db.depth().items() if job_type == case.job_type}


@pytest.mark.parametrize("last", [False, True], ids=["attempts left", "last attempt"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("call", [*FENCED, *UNFENCED])
def test_a_verb_makes_the_listed_move_and_no_other(
    shared_db: Database, call: str, stage: str, last: bool
) -> None:
    case = bring_to(shared_db, stage, last=last)
    before = snapshot(shared_db, case)
    target = target_of(call, stage, last=last)
    moved = (FENCED | UNFENCED)[call](shared_db, case, case.lease)
    if target is None:
        assert moved == set()
        assert snapshot(shared_db, case) == before
    else:
        assert moved == {case.job}
        assert shared_db.state_of(case.job) is target
        assert depth_of(shared_db, case) == {target: 1}


@pytest.mark.parametrize("wrong", WRONG_LEASES)
@pytest.mark.parametrize("call", [*FENCED, *REPORTS])
@pytest.mark.parametrize("stage", STAGES)
def test_a_wrong_lease_changes_nothing(
    shared_db: Database, stage: str, call: str, wrong: str
) -> None:
    case = bring_to(shared_db, stage, last=False)
    before = snapshot(shared_db, case)
    assert (FENCED | REPORTS)[call](shared_db, case, WRONG_LEASES[wrong](case.lease)) == set()
    assert snapshot(shared_db, case) == before


@pytest.mark.parametrize("call", REPORTS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_report_changes_a_held_job_and_no_other(
    shared_db: Database, stage: str, call: str
) -> None:
    case = bring_to(shared_db, stage, last=False)
    before = snapshot(shared_db, case)
    reported = REPORTS[call](shared_db, case, case.lease)
    if stage in ("claimed", "running"):
        assert reported == {case.job}
        assert snapshot(shared_db, case) != before
        assert shared_db.state_of(case.job) is state_at(stage)
    else:
        assert reported == set()
        assert snapshot(shared_db, case) == before


@pytest.mark.parametrize("stage", STAGES)
def test_a_beat_returns_lost_jobs_and_changes_no_job(shared_db: Database, stage: str) -> None:
    case = bring_to(shared_db, stage, last=False)
    before = snapshot(shared_db, case)
    lost = shared_db.beat(case.lease.worker_id, [case.lease])
    assert lost == (set() if stage in ("claimed", "running") else {case.job})
    assert snapshot(shared_db, case) == before


@pytest.mark.parametrize("wrong", WRONG_LEASES)
@pytest.mark.parametrize("stage", STAGES)
def test_a_beat_returns_the_job_of_a_wrong_lease_as_lost(
    shared_db: Database, stage: str, wrong: str
) -> None:
    case = bring_to(shared_db, stage, last=False)
    before = snapshot(shared_db, case)
    lease = WRONG_LEASES[wrong](case.lease)
    assert shared_db.beat(lease.worker_id, [lease]) == {lease.id}
    assert snapshot(shared_db, case) == before


@pytest.mark.parametrize("stage", STAGES)
def test_promote_moves_only_waiting_jobs_that_are_due(shared_db: Database, stage: str) -> None:
    case = bring_to(shared_db, stage, last=False)
    before = snapshot(shared_db, case)
    assert case.job not in shared_db.promote()
    assert snapshot(shared_db, case) == before
    shared_db.clock.advance(HOUR)
    promoted = shared_db.promote()
    assert (case.job in promoted) is (stage == "waiting")
    if stage == "waiting":
        assert [c.id for c in shared_db.claim(case.job_type)] == [case.job]
    else:
        assert snapshot(shared_db, case) == before
