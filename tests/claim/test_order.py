"""A claim takes the highest priority first, then the oldest, and returns what it took."""

from __future__ import annotations

from datetime import timedelta

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine


def test_the_highest_priority_goes_first_and_the_oldest_within_it(db: Database) -> None:
    low = [db.enqueue("mail", priority=30) for _ in range(2)]
    normal = [db.enqueue("mail") for _ in range(2)]
    high = [db.enqueue("mail", priority=150) for _ in range(2)]
    assert [claim.id for claim in db.claim("mail")] == [*high, *normal, *low]


def test_the_order_holds_across_types(db: Database) -> None:
    jobs = [
        db.enqueue(job_type, priority=priority)
        for priority in (150, 100, 30)
        for job_type in ("mail", "resize", "index", "mail")
    ]
    claimed = [
        claim.id
        for batch in (5, 1, 100)
        for claim in db.claim("mail", "resize", "index", batch=batch)
    ]
    assert claimed == jobs


def test_a_type_with_most_of_the_jobs_gives_most_of_the_batch(db: Database) -> None:
    first = [db.enqueue("mail") for _ in range(30)]
    others = [db.enqueue(job_type) for _ in range(3) for job_type in ("resize", "index", "send")]
    last = [db.enqueue("mail") for _ in range(3)]
    types = ("mail", "resize", "index", "send")
    assert [claim.id for claim in db.claim(*types, batch=35)] == [*first, *others[:5]]
    assert [claim.id for claim in db.claim(*types, batch=35)] == [*others[5:], *last]


def test_locked_jobs_are_replaced_by_the_next_in_line(db: Database) -> None:
    jobs = [db.enqueue(job_type) for _ in range(8) for job_type in ("mail", "resize", "index")]
    locked = [jobs[n] for n in (0, 1, 4, 9)]
    other = db.session()
    with other.transaction():
        other.execute("select from jobs where id = any (%s) for update", locked)
        claimed = [claim.id for claim in db.claim("mail", "resize", "index", batch=10)]
    assert claimed == [job for job in jobs if job not in locked][:10]


def test_only_the_given_types_are_claimed(db: Database) -> None:
    mail = db.enqueue("mail")
    db.enqueue("resize", priority=150)
    assert [claim.id for claim in db.claim("mail", "unknown")] == [mail]
    assert db.claim("mail", "unknown") == []
    assert db.claim() == []


def test_a_type_named_twice_is_one_type(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(5)]
    assert [claim.id for claim in db.claim("mail", "mail", batch=3)] == jobs[:3]


def test_no_more_than_the_batch_and_never_the_same_job_twice(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(25)]
    batches = [db.claim("mail") for _ in range(4)]
    assert [len(batch) for batch in batches] == [10, 10, 5, 0]
    assert [claim.id for batch in batches for claim in batch] == jobs


def test_a_claim_is_recorded_in_the_row(db: Database) -> None:
    job = db.enqueue("mail")
    (claim,) = db.claim("mail", worker="first")
    row = db.job(job)
    assert (row["status"], row["worker_id"], row["attempts"]) == (State.CLAIMED, "first", 1)
    assert row["claimed_at"] is not None
    assert row["started_at"] is None
    assert (claim.worker_id, claim.attempts) == ("first", 1)


def test_every_claim_counts_an_attempt(db: Database) -> None:
    db.enqueue("mail", max_attempts=5)
    for attempt in (1, 2, 3):
        claims = db.claim("mail")
        assert [claim.attempts for claim in claims] == [attempt]
        db.retry(claims)


def test_a_claim_returns_the_whole_row(db: Database) -> None:
    job = db.enqueue("mail", {"a": 1}, priority=7, max_attempts=2)
    (row,) = db.rows("select * from claim_job_batch('first', array['mail'])")
    assert row == db.job(job)


def test_promoted_jobs_are_ordered_by_their_due_time(db: Database) -> None:
    late = db.enqueue("mail", delay=timedelta(hours=2))
    soon = db.enqueue("mail", delay=timedelta(hours=1))
    db.clock.advance(timedelta(hours=3))
    assert db.promote() == {soon, late}
    assert [claim.id for claim in db.claim("mail")] == [soon, late]


def test_one_claim_can_take_ten_thousand(db: Database) -> None:
    db.execute("insert into jobs (job_type) select 'mail' from generate_series(1, 10001)")
    assert len(db.claim("mail", batch=10_000)) == 10_000
    assert len(db.claim("mail", batch=10_000)) == 1
