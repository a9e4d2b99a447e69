"""Recover takes jobs from silent workers, and from no others."""

from __future__ import annotations

import random
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from howdah.states import State
from tests.support import Claimed, Database

pytestmark = pytest.mark.engine

BEAT = timedelta(seconds=5)
SILENT_AFTER = timedelta(seconds=15)
TIMEOUT = timedelta(minutes=5)


def test_a_silent_workers_jobs_go_to_others(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(3)]
    db.beat("first", silent_after=SILENT_AFTER)
    claims = db.claim("mail", worker="first")
    db.start(claims[:1])
    db.clock.advance(SILENT_AFTER - timedelta(seconds=1))
    assert db.recover_stale_jobs() == {}
    db.clock.advance(timedelta(seconds=2))
    assert db.recover_stale_jobs() == dict.fromkeys(jobs, State.PENDING)
    again = db.claim("mail", worker="second")
    assert [(claim.id, claim.attempts) for claim in again] == [(job, 2) for job in jobs]


def test_a_long_job_of_a_beating_worker_is_left_alone(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail", worker="first")
    for _ in range(100):
        db.beat("first", claims, SILENT_AFTER)
        db.clock.advance(timedelta(seconds=10))
        assert db.recover_stale_jobs(timedelta(seconds=1)) == {}
    assert db.complete(claims) == {job}


def test_a_worker_that_never_beats_loses_jobs_by_the_age_of_their_claim(db: Database) -> None:
    early = db.enqueue("mail")
    db.claim("mail", worker="foreign")
    db.clock.advance(timedelta(minutes=4))
    late = db.enqueue("mail")
    db.claim("mail", worker="foreign")
    assert db.recover_stale_jobs(TIMEOUT) == {}
    db.clock.advance(timedelta(minutes=2))
    assert db.recover_stale_jobs(TIMEOUT) == {early: State.PENDING}
    assert db.state_of(late) is State.CLAIMED
    assert "foreign held it for more than 00:05:00 and never beat" in db.job(early)["last_error"]


def test_the_last_attempt_fails_with_a_reason(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1)
    db.beat("first", silent_after=SILENT_AFTER)
    db.start(db.claim("mail", worker="first"))
    db.clock.advance(SILENT_AFTER * 2)
    assert db.recover_stale_jobs() == {job: State.FAILED}
    row = db.job(job)
    assert row["last_error"] == (
        "worker first went silent: no beat for more than 00:00:15, on its last attempt"
    )
    assert (row["attempts"], row["worker_id"]) == (1, "first")
    assert row["completed_at"] is not None
    assert [error["error"] for error in row["errors"]] == [row["last_error"]]
    assert db.depth() == {("mail", State.FAILED): 1} == db.counted()


def test_the_last_attempt_of_a_foreign_worker_fails_too(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1)
    db.claim("mail", worker="foreign")
    db.clock.advance(TIMEOUT * 2)
    assert db.recover_stale_jobs(TIMEOUT) == {job: State.FAILED}
    assert "on its last attempt" in db.job(job)["last_error"]


def test_a_job_that_kills_its_workers_fails_after_its_last_attempt(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=3)
    for number in (1, 2, 3):
        worker = f"worker-{number}"
        db.beat(worker, silent_after=SILENT_AFTER)
        assert [claim.attempts for claim in db.claim("mail", worker=worker)] == [number]
        db.clock.advance(SILENT_AFTER * 2)
        state = State.FAILED if number == 3 else State.PENDING
        assert db.recover_stale_jobs() == {job: state}
    errors = db.job(job)["errors"]
    assert [(error["attempt"], error["worker_id"]) for error in errors] == [
        (1, "worker-1"),
        (2, "worker-2"),
        (3, "worker-3"),
    ]


def test_a_worker_that_was_given_up_and_beats_again_is_live_again(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail", worker="first")
    db.beat("first", claims, SILENT_AFTER)
    db.clock.advance(SILENT_AFTER * 2)
    db.recover_stale_jobs()
    assert db.value("select given_up_at is not null from workers where id = 'first'")

    assert db.beat("first", claims, SILENT_AFTER) == {job}  # the beat returns the lost jobs
    assert db.value("select given_up_at is null from workers where id = 'first'")
    assert db.complete(claims) == set()
    new = db.claim("mail", worker="first")
    assert db.recover_stale_jobs() == {}
    assert db.beat("first", new, SILENT_AFTER) == set()
    assert db.complete(new) == {job}


def test_only_the_silent_worker_of_many_loses_its_jobs(db: Database) -> None:
    held: dict[str, list[Claimed]] = {}
    for worker in ("a", "b", "c", "never-beat"):
        db.enqueue("mail")
        held[worker] = db.claim("mail", worker=worker)
        if worker != "never-beat":
            db.beat(worker, silent_after=SILENT_AFTER)
    db.clock.advance(timedelta(seconds=10))
    db.beat("a", silent_after=SILENT_AFTER)
    db.beat("c", silent_after=SILENT_AFTER)
    db.clock.advance(timedelta(seconds=10))
    assert set(db.recover_stale_jobs(TIMEOUT)) == {held["b"][0].id}


NAMES = ("!", "A", "a", "ä", "Z", "z", "zz", "漢", "🐘", "a b", "a-1", "a_1", "00", "~")


@pytest.mark.parametrize("beating", range(len(NAMES) + 1))
def test_workers_that_never_beat_are_found_between_workers_that_do(
    shared_db: Database, beating: int
) -> None:
    """The search skips the names of workers that beat, and finds all names between them."""
    db = shared_db
    rng = random.Random(beating)
    known = set(rng.sample(NAMES, beating))
    held: dict[str, set[UUID]] = {}
    for name in NAMES:
        db.deregister(name)
        db.enqueue_many([{"job_type": f"of {name}"}] * 2)
        held[name] = {claim.id for claim in db.claim(f"of {name}", worker=name)}
    db.clock.advance(2 * TIMEOUT)
    silent = {name for name in known if rng.random() < 0.4}
    for name in known:
        db.beat(name, silent_after=SILENT_AFTER)
    db.execute(
        "update workers set beat_at = beat_at - interval '1 minute' where id = any(%s)",
        list(silent),
    )
    lost = set(NAMES) - known | silent
    expected = set[UUID]().union(*(held[name] for name in lost))
    assert set(db.recover_stale_jobs(TIMEOUT)) == expected
    assert db.recover_stale_jobs(TIMEOUT) == {}
    db.cancel(*set[UUID]().union(*held.values()))


def test_each_worker_has_its_own_silent_after(db: Database) -> None:
    patient, hasty = db.enqueue("patient"), db.enqueue("hasty")
    db.claim("patient", worker="patient")
    db.claim("hasty", worker="hasty")
    db.beat("patient", silent_after=timedelta(hours=1))
    db.beat("hasty", silent_after=timedelta(seconds=1))
    db.clock.advance(timedelta(minutes=1))
    assert db.recover_stale_jobs() == {hasty: State.PENDING}
    assert db.state_of(patient) is State.CLAIMED


def test_a_worker_that_leaves_with_held_jobs_loses_them_after_its_silence(db: Database) -> None:
    job = db.enqueue("mail")
    db.beat("first", silent_after=SILENT_AFTER)
    (claim,) = db.claim("mail", worker="first")
    db.deregister("first")
    assert db.recover_stale_jobs(TIMEOUT) == {}
    db.clock.advance(2 * SILENT_AFTER)
    assert db.recover_stale_jobs(TIMEOUT) == {job: State.PENDING}
    assert db.complete([claim]) == set()
    db.deregister("first")
    assert db.rows("select * from workers") == []


def test_a_job_that_is_being_settled_is_skipped(db: Database) -> None:
    settled, stale = db.enqueue("mail"), db.enqueue("mail")
    claims = db.claim("mail", worker="first")
    db.clock.advance(TIMEOUT * 2)
    other = db.session()
    with other.transaction():
        assert other.complete(claims[:1]) == {settled}
        assert db.recover_stale_jobs(TIMEOUT) == {stale: State.PENDING}  # it does not wait
    assert db.state_of(settled) is State.COMPLETED
    assert db.recover_stale_jobs(TIMEOUT) == {}


def test_a_recovered_job_keeps_its_place_in_line(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(3)]
    db.claim("mail", worker="first", batch=1)
    db.clock.advance(TIMEOUT * 2)
    db.recover_stale_jobs(TIMEOUT)
    assert [claim.id for claim in db.claim("mail")] == jobs


def test_the_answer_names_the_worker_that_held_the_job(db: Database) -> None:
    job = db.enqueue("mail")
    db.claim("mail", worker="first")
    db.clock.advance(TIMEOUT * 2)
    (row,) = db.rows("select * from recover_stale_jobs()")
    assert row == {"id": job, "status": "pending", "worker_id": "first"}


@pytest.mark.parametrize("timeout", ["0", "-1 second", None])
def test_a_timeout_must_be_positive(db: Database, timeout: str | None) -> None:
    db.enqueue("mail")
    db.claim("mail")
    with pytest.raises(psycopg.Error, match="p_timeout must be longer than nothing"):
        db.rows("select * from recover_stale_jobs(%s::interval)", timeout)
    assert db.counted() == {("mail", State.CLAIMED): 1}


@pytest.mark.parametrize("silent_after", ["0", "-1 second", None])
def test_silent_after_must_be_positive(db: Database, silent_after: str | None) -> None:
    with pytest.raises(psycopg.Error, match="silent_after"):
        db.rows("select howdah.beat('first', p_silent_after => %s::interval)", silent_after)
    assert db.rows("select from workers") == []
