"""`claim_next` takes the first jobs of one line, as `claim` does."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from tests.support import Database, Session

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)


def next_of(db: Session, job_type: str, batch: int = 8) -> list[UUID]:
    return db.column("select id from howdah.claim_next('worker', %s, %s)", batch, job_type)


def test_it_takes_the_first_jobs_of_the_line_in_order(db: Database) -> None:
    low = [db.enqueue("mail", priority=30) for _ in range(2)]
    normal = [db.enqueue("mail") for _ in range(2)]
    high = [db.enqueue("mail", priority=150) for _ in range(2)]
    db.enqueue("resize", priority=1000)
    assert next_of(db, "mail", 3) == [*high, normal[0]]
    assert next_of(db, "mail", 10) == [normal[1], *low]
    assert next_of(db, "mail") == []


def test_it_returns_the_same_rows_as_claim(db: Database) -> None:
    """Two statements mark a job as claimed: they must write the same columns."""
    with db.transaction():  # all rows get the same times
        jobs = [db.enqueue("mail", {"to": "you"}) for _ in range(2)]
        (row,) = db.rows(
            "select * from howdah.claim('worker', 1, array['mail'], array[(-2147483648)::int], "
            "array['-infinity'::timestamptz], array[%s::uuid], array[2147483647])",
            UUID(int=0),
        )
        (next_row,) = db.rows("select * from howdah.claim_next('worker', 1, 'mail')")
    assert [row.pop("id"), next_row.pop("id")] == jobs
    assert row == next_row
    assert (row["worker_id"], row["attempts"], row["status"]) == ("worker", 1, "claimed")
    assert row["claimed_at"] is not None


def test_a_job_that_is_due_later_is_not_claimed(db: Database) -> None:
    db.enqueue("mail", delay=HOUR)
    assert next_of(db, "mail") == []


def test_locked_jobs_are_replaced_by_the_next_in_line(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(5)]
    other = db.session()
    with other.transaction():
        assert next_of(other, "mail", 2) == jobs[:2]
        assert next_of(db, "mail", 2) == jobs[2:4]


def test_a_paused_type_gives_nothing(db: Database) -> None:
    job = db.enqueue("mail")
    db.execute("select howdah.pause('mail')")
    assert next_of(db, "mail") == []
    db.execute("select howdah.resume('mail')")
    assert next_of(db, "mail") == [job]


def test_it_searches_after_a_position_and_for_more_urgent_jobs(db: Database) -> None:
    before, mark, after = (db.enqueue("mail") for _ in range(3))
    urgent, less_urgent = db.enqueue("mail", priority=150), db.enqueue("mail", priority=30)
    assert db.column(
        "select c.id from jobs_live as m, howdah.claim_next('worker', 8, 'mail', ~m.priority, "
        "m.ready_at, m.id) as c where m.id = %s",
        mark,
    ) == [urgent, after, less_urgent]
    assert next_of(db, "mail") == [before, mark]
