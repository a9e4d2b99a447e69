"""complete_and_claim: an ending hands its slot to a job that its worker has claimed at once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support import Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)


def limit(db: Database, at_once: int) -> None:
    db.execute("select howdah.set_limit('api', %s)", at_once)
    db.execute("select howdah.set_type_limit('mail', null, false, 'api')")
    db.execute("select howdah.set_type_limit('fax', null, false, 'api')")
    db.admit_all()


def test_the_slots_come_with_claims(db: Database) -> None:
    limit(db, 2)
    jobs = [db.enqueue("mail", priority=100 + n) for n in (0, 0, 0, 0, 9)]
    db.admit()
    held = db.claim("mail")
    assert len(held) == 2
    stale, claims = db.complete_and_claim(held, "mail")
    assert stale == set()
    assert [claim.id for claim in claims] == [job for job in jobs if db.admission_of(job)][:2]
    assert {(claim.worker_id, claim.attempts) for claim in claims} == {("worker", 1)}
    assert db.claim("mail") == []
    assert db.complete(claims) == {claim.id for claim in claims}
    assert len(db.claim("mail")) == 1


def test_a_key_hands_its_slot_to_one_claim(db: Database) -> None:
    jobs = [db.enqueue("mail", key="a") for _ in range(3)]
    db.admit()
    held = db.claim("mail")
    for job in jobs[1:]:
        _, held = db.complete_and_claim(held, "mail")
        assert [claim.id for claim in held] == [job]
        assert db.admitted() == [job]
    assert db.complete_and_claim(held, "mail") == (set(), [])


def test_a_type_that_is_not_asked_for_joins_the_line(db: Database) -> None:
    limit(db, 1)
    db.enqueue("mail")
    db.admit()
    held = db.claim("mail")
    fax = db.enqueue("fax")
    assert db.complete_and_claim(held, "mail") == (set(), [])
    assert [claim.id for claim in db.claim("fax")] == [fax]


def test_a_paused_type_is_not_claimed(db: Database) -> None:
    first, second = (db.enqueue("mail", key="a") for _ in range(2))
    db.admit()
    held = db.claim("mail")
    assert [claim.id for claim in held] == [first]
    db.execute("select howdah.pause('mail')")
    assert db.complete_and_claim(held, "mail") == (set(), [])
    db.execute("select howdah.resume('mail')")
    assert [claim.id for claim in db.claim("mail")] == [second]


def test_a_job_that_has_expired_is_not_claimed(db: Database) -> None:
    db.enqueue("mail", key="a")
    db.admit()
    held = db.claim("mail")
    db.execute(
        "insert into jobs (job_type, key, expires_at) values ('mail', 'a', now() + '1 hour')"
    )
    db.clock.advance(HOUR)
    assert db.complete_and_claim(held, "mail") == (set(), [])


def test_a_job_that_still_waits_for_its_limit_is_not_claimed(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    db.execute("select howdah.set_type_limit('mail', 1, false, 'api')")
    first, other, second = (db.enqueue("mail", key=key) for key in ("a", "b", "a"))
    db.admit_all()
    held = db.claim("mail")
    assert [claim.id for claim in held] == [first]
    _, claims = db.complete_and_claim(held, "mail")
    assert [claim.id for claim in claims] == [other]
    assert db.admission_of(second) == "limit"


def test_a_stale_lease_frees_nothing_and_is_told(db: Database) -> None:
    jobs = [db.enqueue("mail", key="a") for _ in range(2)]
    db.admit()
    held = db.claim("mail")
    stale = [held[0].by("other")]
    assert db.complete_and_claim(stale, "mail") == ({jobs[0]}, [])
    assert db.admitted() == [jobs[0]]


@pytest.mark.parametrize("beats", [False, True])
def test_a_worker_that_never_beats_enters_the_index_of_held_jobs(db: Database, beats: bool) -> None:
    """So it is found when it is lost, without a read of all live jobs."""
    first, second = (db.enqueue("mail", key="a") for _ in range(2))
    if beats:
        db.beat("worker", silent_after=HOUR)
    db.admit()
    held = db.claim("mail")
    assert [claim.id for claim in held] == [first]
    db.complete_and_claim(held, "mail")
    entered = db.value("select held_by from jobs_live where id = %s", second)
    assert entered == (None if beats else "worker")
