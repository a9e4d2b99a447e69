"""Every state meets every verb: the listed moves are made, and nothing else changes anything.

The table is not written here. What must happen to a job in some state under some verb is read
from the moves; what is not a move must leave the whole row as it was, whether the lease that
was shown is the right one, an old one, another worker's or made up.
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
NUMBERS = count(1)


@dataclass(frozen=True)
class Case:
    """A job that was brought into a state, and the lease of its last attempt."""

    job: UUID
    job_type: str
    lease: Claimed


def bring_to(db: Database, stage: str, *, last: bool) -> Case:
    """Make a job and lead it there; `last` means that no attempt is left after this one."""
    number = next(NUMBERS)
    job_type, worker = f"type-{number}", f"worker-{number}"
    job = db.enqueue(job_type, max_attempts=1 if last else 5)
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

Act = Callable[[Database, Case, Claimed], set[UUID]]

# What a worker does with a lease, and what anybody does without one. The first word of a name is
# the verb whose moves apply.
FENCED: dict[str, Act] = {
    "start": lambda db, case, lease: db.start([lease]),
    "complete": lambda db, case, lease: db.complete([lease]),
    "retry": lambda db, case, lease: set(db.retry([lease])),
    "retry later": lambda db, case, lease: set(db.retry([lease], delay=HOUR)),
    "fail": lambda db, case, lease: db.fail([lease]),
    "release": lambda db, case, lease: db.release([lease]),
    "release later": lambda db, case, lease: db.release([lease], HOUR),
    "hand_back": lambda db, case, lease: db.hand_back([lease]),
    "hand_back for good": lambda db, case, lease: db.hand_back([lease], signature="the newest"),
    "cancel by its worker": lambda db, case, lease: db.cancel_held([lease]),
}
UNFENCED: dict[str, Act] = {
    "claim": lambda db, case, lease: {c.id for c in db.claim(case.job_type, worker="another")},
    "cancel": lambda db, case, lease: db.cancel(case.job),
    "recover": lambda db, case, lease: set(db.recover_stale_jobs(MOMENT)) & {case.job},
    "requeue": lambda db, case, lease: db.requeue(case.job),
}
REPORTS: dict[str, Act] = {
    "progress": lambda db, case, lease: db.progress([lease], 50, "half way"),
    "emit": lambda db, case, lease: db.emit([lease], "news", {"n": 1}),
}
WRONG_LEASES: dict[str, Callable[[Claimed], Claimed]] = {
    "another worker's": lambda lease: lease.by("somebody-else"),
    "an older attempt's": lambda lease: lease._replace(attempts=lease.attempts - 1),
    "a later attempt's": lambda lease: lease._replace(attempts=lease.attempts + 1),
    "made up": lambda lease: Claimed(uuid4(), lease.worker_id, lease.attempts),
}


def test_every_verb_is_tried_and_every_listed_move_is_made() -> None:
    """What the tests below cover, read from the same tables as they are."""
    assert {act.split()[0] for act in (*FENCED, *UNFENCED)} == {str(verb) for verb in Verb}
    made = {
        (Verb(act.split()[0]), state_at(stage), target)
        for act in (*FENCED, *UNFENCED)
        for stage in STAGES
        for last in (False, True)
        if (target := target_of(act, stage, last=last)) is not None
    }
    assert made == MOVES
    assert {state_at(stage) for stage in STAGES} == set(State)


def target_of(act: str, stage: str, *, last: bool) -> State | None:
    """Where the moves say this leads; None where they list nothing."""
    verb = Verb(act.split()[0])
    if stage == "waiting" and verb is Verb.CLAIM:
        return None  # pending, but not in line yet
    if act == "cancel by its worker" and state_at(stage) is State.PENDING:
        return None  # nobody holds it
    listed = {target for v, source, target in MOVES if (v, source) == (verb, state_at(stage))}
    if listed and verb is Verb.HAND_BACK:
        return State.FAILED if act == "hand_back for good" else State.PENDING
    if listed == {State.PENDING, State.FAILED}:
        return State.FAILED if last else State.PENDING
    assert len(listed) <= 1, f"{verb} of a {stage} job may lead to {listed}"
    return next(iter(listed), None)


def untouched(db: Database, case: Case) -> dict[str, object]:
    """Everything the database knows about the job."""
    events = db.rows("select * from job_events where job_id = %s order by number", case.job)
    return {"row": db.job(case.job), "events": events, "depth": depth_of(db, case)}


def depth_of(db: Database, case: Case) -> dict[State, int]:
    return {state: n for (job_type, state), n in db.depth().items() if job_type == case.job_type}


@pytest.mark.parametrize("last", [False, True], ids=["attempts left", "last attempt"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("act", [*FENCED, *UNFENCED])
def test_a_verb_makes_the_listed_move_and_no_other(
    shared_db: Database, act: str, stage: str, last: bool
) -> None:
    case = bring_to(shared_db, stage, last=last)
    before = untouched(shared_db, case)
    target = target_of(act, stage, last=last)
    moved = (FENCED | UNFENCED)[act](shared_db, case, case.lease)
    if target is None:
        assert moved == set()
        assert untouched(shared_db, case) == before
    else:
        assert moved == {case.job}
        assert shared_db.state_of(case.job) is target
        assert depth_of(shared_db, case) == {target: 1}


@pytest.mark.parametrize("wrong", WRONG_LEASES)
@pytest.mark.parametrize("act", [*FENCED, *REPORTS])
@pytest.mark.parametrize("stage", STAGES)
def test_a_wrong_lease_changes_nothing(
    shared_db: Database, stage: str, act: str, wrong: str
) -> None:
    case = bring_to(shared_db, stage, last=False)
    before = untouched(shared_db, case)
    assert (FENCED | REPORTS)[act](shared_db, case, WRONG_LEASES[wrong](case.lease)) == set()
    assert untouched(shared_db, case) == before


@pytest.mark.parametrize("act", REPORTS)
@pytest.mark.parametrize("stage", STAGES)
def test_a_report_reaches_a_held_job_and_no_other(
    shared_db: Database, stage: str, act: str
) -> None:
    case = bring_to(shared_db, stage, last=False)
    before = untouched(shared_db, case)
    heard = REPORTS[act](shared_db, case, case.lease)
    if stage in ("claimed", "running"):
        assert heard == {case.job}
        assert untouched(shared_db, case) != before
        assert shared_db.state_of(case.job) is state_at(stage)
    else:
        assert heard == set()
        assert untouched(shared_db, case) == before


@pytest.mark.parametrize("stage", STAGES)
def test_a_beat_tells_what_is_lost_and_changes_no_job(shared_db: Database, stage: str) -> None:
    case = bring_to(shared_db, stage, last=False)
    before = untouched(shared_db, case)
    lost = shared_db.beat(case.lease.worker_id, [case.lease])
    assert lost == (set() if stage in ("claimed", "running") else {case.job})
    assert untouched(shared_db, case) == before


@pytest.mark.parametrize("wrong", WRONG_LEASES)
@pytest.mark.parametrize("stage", STAGES)
def test_a_beat_with_a_wrong_lease_is_told_that_it_is_lost(
    shared_db: Database, stage: str, wrong: str
) -> None:
    case = bring_to(shared_db, stage, last=False)
    before = untouched(shared_db, case)
    lease = WRONG_LEASES[wrong](case.lease)
    assert shared_db.beat(lease.worker_id, [lease]) == {lease.id}
    assert untouched(shared_db, case) == before


@pytest.mark.parametrize("stage", STAGES)
def test_promote_moves_only_what_waits_and_is_due(shared_db: Database, stage: str) -> None:
    case = bring_to(shared_db, stage, last=False)
    before = untouched(shared_db, case)
    assert case.job not in shared_db.promote()
    assert untouched(shared_db, case) == before
    shared_db.clock.advance(HOUR)
    promoted = shared_db.promote()
    assert (case.job in promoted) is (stage == "waiting")
    if stage == "waiting":
        assert [c.id for c in shared_db.claim(case.job_type)] == [case.job]
    else:
        assert untouched(shared_db, case) == before
