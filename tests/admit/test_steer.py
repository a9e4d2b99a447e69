"""What people do to jobs with keys and limits does what they expect."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support import Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)


def test_a_cancelled_waiting_job_takes_no_slot(db: Database) -> None:
    first, second, third = (db.enqueue("mail", key="a") for _ in range(3))
    db.admit()
    db.cancel(second)
    db.complete(db.claim("mail"))
    assert [claim.id for claim in db.claim("mail")] == [third]
    assert db.cancel(first) == set()


def test_a_requeued_job_waits_for_a_slot(db: Database) -> None:
    first, _ = (db.enqueue("mail", key="a") for _ in range(2))
    db.admit()
    db.cancel(first)
    assert db.requeue(first) == {first}
    assert db.admission_of(first) == "slot"
    assert len(db.claim("mail")) == 1
    assert db.admit() == 0


def test_a_clone_has_the_key_and_waits(db: Database) -> None:
    first = db.enqueue("mail", key="a")
    db.admit()
    ((clone),) = db.column("select clone_id from howdah.clone(%s)", [first])
    assert db.job(clone)["key"] == "a"
    assert db.admission_of(clone) == "slot"
    db.complete(db.claim("mail"))
    assert [claim.id for claim in db.claim("mail")] == [clone]


@pytest.mark.parametrize("verb", ["select howdah.clone(%s)", "select howdah.requeue(%s)"])
def test_the_rules_are_read_once_for_all_jobs(db: Database, verb: str) -> None:
    db.execute("select howdah.set_type_limit('fax', 3)")
    jobs = db.enqueue_many([{"job_type": "mail"}] * 20)
    db.cancel(*jobs)
    with db.transaction():
        assert len(db.rows(verb, jobs)) == 20
        scans = db.value(
            "select seq_scan + idx_scan from pg_stat_xact_user_tables "
            "where relid = 'howdah.type_limits'::regclass"
        )
    assert scans < 10


def test_a_waiting_job_with_another_priority_is_admitted_by_it(db: Database) -> None:
    first, second, third = (db.enqueue("mail", key="a") for _ in range(3))
    db.admit()
    db.execute("select howdah.reprioritise(%s, 200)", [third])
    for job in (first, third, second):
        claims = db.claim("mail")
        assert [claim.id for claim in claims] == [job]
        db.complete(claims)


def test_run_now_does_not_pass_the_limit(db: Database) -> None:
    db.enqueue("mail", key="a")
    later = db.enqueue("mail", key="a", delay=HOUR)
    db.admit()
    assert db.column("select howdah.run_now(%s)", [later]) == [later]
    assert db.admission_of(later) == "slot"
    assert db.column("select howdah.run_now(%s)", [later]) == []
    db.admit()
    assert len(db.claim("mail")) == 1


def test_a_paused_type_leaves_the_limit_to_others(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 2)")
    for job_type in ("mail", "report"):
        db.execute("select howdah.set_type_limit(%s, null, false, 'api')", job_type)
    mails = [db.enqueue("mail") for _ in range(5)]
    reports = [db.enqueue("report") for _ in range(2)]
    db.admit()
    assert db.admitted() == mails[:2]
    db.value("select howdah.pause('mail')")
    assert db.admitted() == reports
    db.complete(db.claim("report"))
    db.admit_all()  # nobody looks again and again
    db.value("select howdah.resume('mail')")
    db.admit()
    assert db.admitted() == mails[:2]


def test_pruned_and_deleted_jobs_leave_nothing(db: Database) -> None:
    first = db.enqueue("mail", key="a")
    db.admit()
    db.complete(db.claim("mail"))
    assert db.column("select howdah.delete(%s)", [first]) == [first]
    db.enqueue("mail", key="a")
    assert db.admit() == 1
