"""Plain SQL of any client keeps the counts and wakes those who wait."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from tests.support import Database

pytestmark = pytest.mark.engine


@pytest.fixture
def two(db: Database) -> list[UUID]:
    """Two jobs of one key; the first is held by a worker."""
    jobs = [db.enqueue("mail", key="a") for _ in range(2)]
    db.admit()
    assert [claim.id for claim in db.claim("mail")] == [jobs[0]]
    return jobs


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs SET status='completed', progress=100, completed_at=now() WHERE id=$1",
        "UPDATE jobs SET status = 'failed', worker_id=NULL, claimed_at=NULL WHERE id=$1",
    ],
)
def test_a_plain_end_frees_the_slot(db: Database, two: list[UUID], statement: str) -> None:
    db.plain(statement, two[0])
    db.admit()
    assert [claim.id for claim in db.claim("mail")] == [two[1]]


def test_a_plain_end_frees_the_slot_of_a_limit(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    db.execute("select howdah.set_type_limit('mail', null, false, 'api')")
    jobs = [db.enqueue("mail") for _ in range(3)]
    db.admit()
    db.claim("mail")
    db.plain("UPDATE jobs SET status='completed' WHERE id=$1", jobs[0])
    db.admit()
    assert db.admitted() == [jobs[1]]


def test_a_plain_delete_frees_the_slots(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    db.execute("select howdah.set_type_limit('mail', 1, false, 'api')")
    jobs = [db.enqueue("mail", key=key) for key in ("a", "a", "b")]
    db.admit()
    assert db.admitted() == [jobs[0]]
    db.execute("alter table jobs_live disable trigger guard_leaving")  # which forbids the delete
    db.plain("DELETE FROM jobs WHERE id=$1", jobs[0])
    db.execute("alter table jobs_live enable trigger guard_leaving")
    db.admit()
    assert db.admitted() == [jobs[1]]
    assert db.admission_of(jobs[2]) == "limit"


def test_what_no_trigger_sees_is_found_within_ten_minutes(db: Database, two: list[UUID]) -> None:
    db.execute("alter table jobs_live disable trigger guard_leaving")  # which forbids the delete
    db.plain("DELETE FROM jobs_live WHERE id=$1", two[0])
    db.execute("alter table jobs_live enable trigger guard_leaving")
    db.admit()
    assert db.claim("mail") == []
    db.upkeep()
    db.admit()
    assert [claim.id for claim in db.claim("mail")] == [two[1]]


def test_a_plain_claim_of_a_waiting_job_changes_nothing(db: Database, two: list[UUID]) -> None:
    assert db.plain("update jobs set status='claimed', worker_id='x' where id=$1", two[1]) == 0
    assert db.admission_of(two[1]) == "slot"


def test_a_plain_claim_of_a_scheduled_plain_job_still_works(db: Database) -> None:
    job = db.enqueue("mail", delay=timedelta(hours=1))
    assert db.plain("update jobs set status='claimed', worker_id='x' where id=$1", job) == 1


def test_a_job_that_is_put_off_by_hand_gives_its_slot_away(db: Database, two: list[UUID]) -> None:
    db.plain(
        "update jobs set status='pending', worker_id=null, run_at = now() + '1 hour' where id=$1",
        two[0],
    )
    assert db.admission_of(two[0]) == "time"
    db.admit()
    assert [claim.id for claim in db.claim("mail")] == [two[1]]
    db.clock.advance(timedelta(hours=1))
    db.upkeep()
    assert db.admission_of(two[0]) == "slot"


def test_a_waiting_job_that_is_put_off_waits_for_its_time_first(
    db: Database, two: list[UUID]
) -> None:
    db.plain("update jobs set run_at = now() + '1 hour' where id=$1", two[1])
    third = db.enqueue("mail", key="a")
    db.complete(db.claim("mail") or [])
    db.plain("UPDATE jobs SET status='completed' WHERE id=$1", two[0])
    db.admit_all()
    assert db.admission_of(two[1]) == "time"
    assert [claim.id for claim in db.claim("mail")] == [third]


def test_a_job_that_is_inserted_as_held_takes_a_slot(db: Database) -> None:
    # the guard lets jobs begin as pending only
    db.execute("alter table jobs_live disable trigger guard_arriving")
    db.plain(
        "insert into jobs (job_type, key, status, worker_id, claimed_at, attempts) "
        "values ('mail', 'a', 'claimed', 'x', now(), 1)"
    )
    db.execute("alter table jobs_live enable trigger guard_arriving")
    db.enqueue("mail", key="a")
    db.admit()
    assert db.claim("mail") == []


def test_a_job_that_is_made_live_again_waits_for_a_slot(db: Database, two: list[UUID]) -> None:
    db.plain("UPDATE jobs SET status='failed' WHERE id=$1", two[0])
    db.plain("UPDATE jobs SET status='pending' WHERE id=$1", two[0])
    assert db.admission_of(two[0]) == "slot"
    db.admit()
    assert len(db.claim("mail")) == 1


def test_the_key_of_a_live_job_cannot_be_changed(db: Database, two: list[UUID]) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="cannot be changed"):
        db.plain("update jobs set key = 'b' where id=$1", two[0])
    assert db.plain("update jobs set key = 'a' where id=$1", two[0]) == 1


@pytest.mark.parametrize("key", ["", "x" * 201, "x" * 10_000, "a\nb"])
def test_a_bad_key_is_refused_by_every_way(db: Database, key: str) -> None:
    wrong = pytest.raises(psycopg.errors.InvalidParameterValue, match="key must have 1 to 200")
    with wrong:
        db.enqueue("mail", key=key)
    with wrong:
        db.enqueue_many([{"job_type": "mail", "key": key}])
    with wrong:
        db.execute("insert into jobs (job_type, key) values ('mail', %s)", key)
    assert db.counted() == {}
