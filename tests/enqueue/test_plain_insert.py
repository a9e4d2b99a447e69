"""A plain INSERT from any client is a job like any other."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine

INT_MIN, INT_MAX = -2147483648, 2147483647


def claimed_numbers(db: Database, batch: int = 100) -> list[Any]:
    return [(claim.data or {})["n"] for claim in db.claim("mail", batch=batch)]


def test_an_inserted_job_is_claimed(db: Database) -> None:
    db.plain(
        "INSERT INTO jobs (job_type, priority, data) VALUES ($1, $2, $3)", "mail", 150, '{"to": 7}'
    )
    (claim,) = db.claim("mail", worker="first")
    assert (claim.job_type, claim.priority, claim.data) == ("mail", 150, {"to": 7})
    assert (claim.worker_id, claim.attempts) == ("first", 1)


def test_rows_of_one_insert_keep_their_order(db: Database) -> None:
    values = ", ".join(f"""('mail', 100, '{{"n": {n}}}')""" for n in range(50))
    db.plain(f"INSERT INTO jobs (job_type, priority, data) VALUES {values}")
    assert claimed_numbers(db) == list(range(50))


def test_inserts_of_one_transaction_keep_their_order(db: Database) -> None:
    with db.transaction():
        for n in range(20):
            db.plain("INSERT INTO jobs (job_type, data) VALUES ('mail', $1)", f'{{"n": {n}}}')
    assert claimed_numbers(db) == list(range(20))


def test_a_job_created_earlier_is_claimed_earlier(db: Database) -> None:
    now = datetime.now(UTC)
    for n, age in enumerate([0, 3, 1, 2]):
        db.plain(
            "INSERT INTO jobs (job_type, data, created_at) VALUES ('mail', $1, $2)",
            f'{{"n": {n}}}',
            now - timedelta(hours=age),
        )
    assert claimed_numbers(db) == [1, 3, 2, 0]


def test_any_integer_is_a_priority(db: Database) -> None:
    for priority in (0, INT_MIN, 150, INT_MAX, -1, 30, 100, 1):
        db.plain(
            "INSERT INTO jobs (job_type, priority, data) VALUES ('mail', $1, $2)",
            priority,
            f'{{"n": {priority}}}',
        )
    assert claimed_numbers(db, batch=3) == [INT_MAX, 150, 100]
    assert claimed_numbers(db) == [30, 1, 0, -1, INT_MIN]


def test_the_extremes_of_priority_are_claimed_among_several_types(db: Database) -> None:
    for job_type in ("mail", "resize"):
        for priority in (INT_MIN, INT_MAX):
            db.plain("INSERT INTO jobs (job_type, priority) VALUES ($1, $2)", job_type, priority)
    order = [
        (claim.priority, claim.job_type) for claim in db.claim("mail", "resize", "nothing here")
    ]
    assert order == [
        (INT_MAX, "mail"),
        (INT_MAX, "resize"),
        (INT_MIN, "mail"),
        (INT_MIN, "resize"),
    ]


def test_a_job_inserted_for_later_waits(db: Database) -> None:
    hour = timedelta(hours=1)
    job = db.value(
        "insert into jobs (job_type, run_at) values ('mail', now() + %s) returning id", hour
    )
    assert db.claim("mail") == []
    db.clock.advance(hour)
    assert db.promote() == {job}
    assert [claim.id for claim in db.claim("mail")] == [job]


def test_a_rolled_back_insert_leaves_no_job(db: Database) -> None:
    with db.rolled_back():
        db.plain("INSERT INTO jobs (job_type) VALUES ('mail')")
    assert db.claim("mail") == []


def test_copy_works_like_an_insert(db: Database) -> None:
    with (
        db.connection.cursor() as cursor,
        cursor.copy("COPY jobs (job_type, priority, data) FROM STDIN") as copy,
    ):
        for n in range(10):
            copy.write_row(("mail", 100 if n % 2 else 150, f'{{"n": {n}}}'))
    assert claimed_numbers(db) == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]


def test_finished_jobs_can_be_inserted_and_are_counted(db: Database) -> None:
    db.execute("alter table jobs_finished disable trigger guard_arriving")
    db.plain(
        "INSERT INTO jobs (job_type, status) VALUES ('mail', 'completed'), ('mail', 'failed'), "
        "('mail', 'completed'), ('mail', 'pending')"
    )
    assert db.depth() == db.counted()
    assert db.depth()["mail", State.COMPLETED] == 2


def test_a_payload_over_the_limit_is_refused_with_a_hint(db: Database) -> None:
    with pytest.raises(psycopg.Error, match="300011 bytes; the limit is 262144") as refused:
        db.plain(
            "INSERT INTO jobs (job_type, data) VALUES ('mail', $1)", f'{{"a": "{"x" * 300_002}"}}'
        )
    assert refused.value.sqlstate == "HW001"
    assert "reference" in (refused.value.diag.message_hint or "")
    assert db.counted() == {}


def test_the_limit_of_a_payload_is_an_option(db: Database) -> None:
    db.execute("update options set value = '1000' where name = 'max_payload_bytes'")
    insert = "INSERT INTO jobs (job_type, data) VALUES ('mail', $1)"
    db.plain(insert, f'{{"a": "{"x" * 991}"}}')
    with pytest.raises(psycopg.Error, match="1001 bytes; the limit is 1000"):
        db.plain(insert, f'{{"a": "{"x" * 992}"}}')
    assert len(db.claim("mail")) == 1
