"""Runs: a worker that holds a job of an ordered key also holds those that come next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from howdah.states import State
from tests.support import Claimed, Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
ORDERED = "select howdah.set_type_limit('mail', 1, true)"


class Running:
    """Five jobs of one ordered key: a worker holds the first, and the next three as its run."""

    def __init__(self, db: Database) -> None:
        db.execute(ORDERED)
        db.beat("worker", silent_after=HOUR)
        self.jobs = [db.enqueue("mail", key="a", max_attempts=5) for _ in range(5)]
        db.admit()
        self.head = db.claim("mail")
        self.run = db.claim_run(self.head, 3)


@pytest.fixture
def five(db: Database) -> Running:
    return Running(db)


def run_rest(db: Database, worker: str = "other") -> list[UUID]:
    """Run all jobs that are left, one by one; returns them in the order in which they ran."""
    ran: list[UUID] = []
    while True:
        db.admit_all()
        claims = db.claim("mail", worker=worker)
        if not claims:
            return ran
        assert len(claims) == 1
        ran.append(claims[0].id)
        db.complete(claims)


def in_line(db: Database) -> list[UUID]:
    return db.column("select id from jobs where ready_at is not null and worker_id is null")


def test_a_run_has_the_next_jobs_in_their_order(five: Running) -> None:
    assert [claim.id for claim in five.run] == five.jobs[1:4]
    assert [claim.attempts for claim in five.run] == [1, 1, 1]


def test_a_run_goes_by_arrival_and_not_by_priority(db: Database) -> None:
    db.execute(ORDERED)
    jobs = [db.enqueue("mail", key="a", priority=p) for p in (1, 3, 2, 3, -(2**31), 2**31 - 1, 3)]
    db.admit()
    head = db.claim("mail")
    assert [claim.id for claim in db.claim_run(head, 5)] == jobs[1:6]


def test_one_call_serves_many_keys(db: Database) -> None:
    db.execute(ORDERED)
    jobs = {key: [db.enqueue("mail", key=key) for _ in range(3)] for key in "abc"}
    db.admit()
    run = db.claim_run(db.claim("mail"), 2)
    assert {claim.id for claim in run} == {id for own in jobs.values() for id in own[1:]}
    for own in jobs.values():
        assert [claim.id for claim in run if claim.id in own] == own[1:]


def test_a_run_that_ends_at_once_hands_the_slot_over_once(db: Database, five: Running) -> None:
    db.complete([*five.head, *five.run])
    assert in_line(db) == [five.jobs[4]]
    assert run_rest(db) == [five.jobs[4]]


def test_the_slot_is_handed_over_when_the_last_of_a_run_has_ended(
    db: Database, five: Running
) -> None:
    db.complete(five.head)
    db.fail(five.run[:1])
    db.cancel(five.run[1].id)
    db.admit_all()
    assert in_line(db) == []
    db.complete(five.run[2:])
    assert in_line(db) == [five.jobs[4]]


def test_the_ends_of_a_run_request_no_look(db: Database, five: Running) -> None:
    db.admit_all()
    db.complete(five.head)
    db.complete(five.run)
    assert db.column("select name from admission_requests") == []


def test_nobody_else_gets_a_job_of_a_run(db: Database, five: Running) -> None:
    later = five.head[0].by("other")
    assert db.claim("mail", worker="other") == []
    assert db.claim_run([later]) == []
    db.admit_all()
    assert db.claim("mail", worker="other") == []


NOT_NOW: dict[str, Callable[[Database, list[Claimed]], object]] = {
    "ended": lambda db, head: db.complete(head),
    "put back": lambda db, head: db.retry(head),
    "not ordered": lambda db, _: db.execute("select howdah.set_type_limit('mail', 1)"),
    "paused": lambda db, _: db.execute("select howdah.pause('mail')"),
    "another attempt": lambda _, head: head.append(head.pop()._replace(attempts=7)),
}


@pytest.mark.parametrize("why", NOT_NOW)
def test_there_is_no_run(db: Database, why: str) -> None:
    db.execute(ORDERED)
    for _ in range(3):
        db.enqueue("mail", key="a")
    db.admit()
    head = db.claim("mail")
    NOT_NOW[why](db, head)
    assert db.claim_run(head) == []


def test_there_is_one_run_per_key(db: Database, five: Running) -> None:
    assert db.claim_run(five.head) == []
    db.complete(five.head)
    assert db.claim_run(five.run[:2]) == []


def test_a_run_goes_on_behind_its_last_job(db: Database, five: Running) -> None:
    more = db.claim_run(five.run)
    assert [claim.id for claim in more] == five.jobs[4:]
    late = db.enqueue("mail", key="a")
    db.complete([*five.head, *five.run])
    assert [claim.id for claim in db.claim_run(more)] == [late]


def test_a_run_does_not_go_on_while_its_head_is_to_run_again(db: Database, five: Running) -> None:
    db.retry(five.head)
    assert db.claim_run(five.run) == []


def test_there_is_no_run_while_others_hold_the_key(db: Database) -> None:
    db.execute("select howdah.set_type_limit('mail', 2)")
    for _ in range(4):
        db.enqueue("mail", key="a")
    db.admit()
    claims = db.claim("mail")
    db.execute(ORDERED)
    db.admit_all()
    assert db.claim_run(claims[:1]) == []


def test_a_head_that_is_locked_has_no_run(db: Database) -> None:
    db.execute(ORDERED)
    jobs = [db.enqueue("mail", key="a") for _ in range(2)]
    db.admit()
    head = db.claim("mail")
    other = db.session()
    with other.transaction():
        other.execute("select from jobs_live where id = %s for update", jobs[0])
        assert db.claim_run(head) == []
    assert [claim.id for claim in db.claim_run(head)] == jobs[1:]


STOPS = {
    "not due": "update jobs_live set run_at = now() + '1 hour' where id = %s",
    "expired": "update jobs_live set expires_at = now() where id = %s",
    "needs a limit": "update jobs_live set limited_by = 'api' where id = %s",
}


@pytest.mark.parametrize("why", STOPS)
def test_a_run_ends_before_a_job_that_cannot_run_now(db: Database, why: str) -> None:
    db.execute(ORDERED)
    jobs = [db.enqueue("mail", key="a") for _ in range(4)]
    db.admit()
    db.execute(STOPS[why], jobs[2])
    assert [claim.id for claim in db.claim_run(db.claim("mail"))] == jobs[1:2]


def test_a_run_ends_before_a_locked_job(db: Database) -> None:
    db.execute(ORDERED)
    jobs = [db.enqueue("mail", key="a") for _ in range(4)]
    db.admit()
    head = db.claim("mail")
    other = db.session()
    with other.transaction():
        other.execute("select from jobs_live where id = %s for update", jobs[2])
        assert [claim.id for claim in db.claim_run(head)] == jobs[1:2]


def test_a_job_of_a_run_can_be_marked_as_running(db: Database, five: Running) -> None:
    assert db.start(five.run[:1]) == {five.run[0].id}
    assert db.state_of(five.run[0].id) is State.RUNNING


BACK: dict[str, Callable[[Database, list[Claimed]], object]] = {
    "retry": lambda db, claims: db.retry(claims),
    "retry later": lambda db, claims: db.retry(claims, delay=HOUR),
    "release": lambda db, claims: db.release(claims),
    "snooze": lambda db, claims: db.release(claims, HOUR),
    "hand_back": lambda db, claims: db.hand_back(claims),
    "plain": lambda db, claims: db.plain(
        "UPDATE jobs SET status='pending', worker_id=NULL, claimed_at=NULL WHERE id=$1",
        claims[0].id,
    ),
    "plain, later": lambda db, claims: db.plain(
        "UPDATE jobs SET status='pending', worker_id=NULL, run_at=now() + '1 hour' WHERE id=$1",
        claims[0].id,
    ),
}


@pytest.mark.parametrize("back", BACK)
@pytest.mark.parametrize("ended", [True, False])
def test_a_job_of_a_run_that_goes_back_blocks_those_behind_it(
    db: Database, five: Running, back: str, ended: bool
) -> None:
    """Whether or not the ending of the job before it was written first."""
    if ended:
        db.complete(five.head)
    BACK[back](db, five.run[:1])
    assert in_line(db) == []
    if not back.startswith("plain"):  # that takes the others away, too
        db.release(five.run[1:])
    if not ended:
        db.complete(five.head)
    assert five.jobs[2] not in in_line(db)
    db.admit_all()
    db.clock.advance(2 * HOUR)
    db.upkeep()
    assert run_rest(db) == five.jobs[1:]


@pytest.mark.parametrize("back", BACK)
def test_a_head_that_goes_back_runs_before_its_run(db: Database, five: Running, back: str) -> None:
    BACK[back](db, five.head)
    if not back.startswith("plain"):
        db.release(five.run)
    db.admit_all()
    db.clock.advance(2 * HOUR)
    db.upkeep()
    assert run_rest(db) == five.jobs


def test_a_head_that_runs_again_lets_nobody_in_before_its_run_is_back(
    db: Database, five: Running
) -> None:
    db.retry(five.head)
    db.complete(db.claim("mail", worker="other"))
    db.admit_all()
    assert in_line(db) == []
    db.release(five.run)
    assert run_rest(db) == five.jobs[1:]


def test_a_run_that_was_put_back_by_plain_sql_is_lost(db: Database, five: Running) -> None:
    db.plain("UPDATE jobs SET status='pending', worker_id=NULL WHERE id=$1", five.run[0].id)
    assert db.complete(five.run) == set()
    assert db.complete(five.head) == {five.head[0].id}
    assert run_rest(db) == five.jobs[1:]


def test_a_plain_update_puts_a_whole_run_back(db: Database, five: Running) -> None:
    db.execute("update jobs set status = 'pending', worker_id = null where worker_id = 'worker'")
    assert run_rest(db) == five.jobs


def test_the_run_of_a_silent_worker_is_recovered_in_its_order(db: Database, five: Running) -> None:
    db.complete(five.head)
    db.clock.advance(2 * HOUR)
    assert set(db.recover_stale_jobs()) == {claim.id for claim in five.run}
    assert db.complete(five.run) == set()
    assert run_rest(db) == five.jobs[1:]


def test_the_run_of_a_worker_that_never_beats_is_recovered(db: Database) -> None:
    db.execute(ORDERED)
    jobs = [db.enqueue("mail", key="a") for _ in range(4)]
    db.admit()
    head = db.claim("mail")
    run = db.claim_run(head, 3)
    db.complete(head)
    db.clock.advance(2 * HOUR)
    # every ten minutes recover reads all live jobs: not now
    db.execute("insert into upkeep_log (done_at) values (howdah.clock())")
    assert set(db.recover_stale_jobs()) == {claim.id for claim in run}
    assert run_rest(db) == jobs[1:]


def test_a_head_is_recovered_with_all_of_its_run_or_not_yet(db: Database, five: Running) -> None:
    db.clock.advance(2 * HOUR)
    other = db.session()
    with other.transaction():
        other.execute("select from jobs_live where id = %s for update", five.jobs[3])
        assert list(db.recover_stale_jobs()) == []
    assert list(db.recover_stale_jobs()) == []  # but the index jobs_held has that job now
    assert set(db.recover_stale_jobs()) == set(five.jobs[:4])
    assert run_rest(db) == five.jobs


def test_a_lost_worker_costs_each_job_of_its_run_an_attempt(db: Database, five: Running) -> None:
    db.clock.advance(2 * HOUR)
    db.recover_stale_jobs()
    assert set(db.column("select attempts from jobs where id = any(%s)", five.jobs[:4])) == {1}


def test_a_scheduled_job_waits_for_the_end_of_a_run(db: Database) -> None:
    db.execute(ORDERED)
    db.beat("worker", silent_after=DAY)
    scheduled = db.enqueue("mail", key="a", delay=HOUR)
    jobs = [db.enqueue("mail", key="a") for _ in range(4)]
    db.admit()
    head = db.claim("mail")
    run = db.claim_run(head, 2)
    db.clock.advance(2 * HOUR)
    db.upkeep()
    db.complete(head)
    db.admit_all()
    assert in_line(db) == []
    db.complete(run)
    assert run_rest(db) == [scheduled, jobs[3]]


def test_a_job_that_is_committed_late_goes_before_those_enqueued_after_it(db: Database) -> None:
    db.execute(ORDERED)
    producer = db.session()
    with producer.transaction():
        late = producer.enqueue("mail", key="a")
        jobs = [db.enqueue("mail", key="a") for _ in range(2)]
        db.admit()
        head = db.claim("mail")
    after = db.enqueue("mail", key="a")
    assert [claim.id for claim in db.claim_run(head)] == [late, jobs[1], after]


@pytest.mark.parametrize("rule", ["set_type_limit('mail', 1)", "clear_type_limit('mail')"])
def test_a_rule_that_changes_leaves_one_slot_to_a_run(
    db: Database, five: Running, rule: str
) -> None:
    db.execute(f"select howdah.{rule}")
    for _ in range(3):
        db.enqueue("mail", key="a")
    db.admit_all()
    assert in_line(db) == []
    db.complete(five.head)
    db.complete(five.run[:2])
    db.admit_all()
    assert in_line(db) == []
    db.complete(five.run[2:])
    db.admit_all()
    assert len(in_line(db)) == 1
    assert len(run_rest(db)) == 4


def test_a_run_counts_in_a_limit_that_is_new(db: Database, five: Running) -> None:
    db.execute("select howdah.set_limit('api', 2)")
    db.execute("select howdah.set_type_limit('mail', 1, true, 'api')")
    db.execute("select howdah.set_type_limit('other', null, false, 'api')")
    db.enqueue("other")
    db.admit_all()
    assert db.claim("other") == []
    db.complete(five.head)
    db.release(five.run[1:])
    db.admit_all()
    assert len(db.claim("other")) == 1
    db.complete(five.run[:1])
    assert run_rest(db) == five.jobs[2:]


def test_a_plain_claim_of_a_job_that_waits_changes_nothing(db: Database, five: Running) -> None:
    assert not db.column(
        "update jobs set status = 'claimed', worker_id = 'other' where id = %s returning id",
        five.jobs[4],
    )


def test_a_job_of_a_run_that_somebody_deletes_leaves_the_slot(db: Database, five: Running) -> None:
    db.complete([*five.head, *five.run[:2]])
    db.plain("UPDATE jobs SET status='completed' WHERE id=$1", five.jobs[3])
    assert run_rest(db) == five.jobs[4:]


def test_bad_input_is_refused(db: Database) -> None:
    with pytest.raises(psycopg.Error, match="arrays of one length"):
        db.rows("select * from howdah.claim_run('worker', '{}', '{1}', '{}')")
