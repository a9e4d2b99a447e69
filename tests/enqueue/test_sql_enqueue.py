"""The SQL functions `enqueue` and `enqueue_many`, called over psycopg."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support import Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)


def test_a_job_has_the_given_values(db: Database) -> None:
    job = db.enqueue("mail", {"to": "you"}, priority=150, max_attempts=7)
    row = db.job(job)
    assert (row["job_type"], row["data"], row["priority"], row["max_attempts"]) == (
        "mail",
        {"to": "you"},
        150,
        7,
    )
    assert row["ready_at"] == row["created_at"]


def test_omitted_arguments_have_defaults(db: Database) -> None:
    job = db.value("select howdah.enqueue('mail')")
    row = db.job(job)
    assert (row["data"], row["priority"], row["max_attempts"], row["run_at"]) == ({}, 100, 3, None)


def test_the_caller_may_choose_an_unused_id(db: Database) -> None:
    job = uuid4()
    assert db.enqueue("mail", id=job) == job
    with pytest.raises(psycopg.errors.UniqueViolation):
        db.enqueue("mail", id=job)
    assert len(db.claim("mail")) == 1


def test_ids_rise_and_are_time_ordered(db: Database) -> None:
    ids = [db.enqueue("mail") for _ in range(20)]
    ids += db.column("select howdah.new_id() from generate_series(1, 1000)")
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    dates = {datetime.fromtimestamp((id.int >> 80) / 1000, UTC).date() for id in ids}
    assert dates <= {datetime.now(UTC).date(), datetime.now(UTC).date() - timedelta(days=1)}
    assert {(id.version, id.variant) for id in ids} == {(7, "specified in RFC 4122")}


def test_ids_of_one_microsecond_keep_their_order(db: Database) -> None:
    """A counter follows the time in the id, so ids of the same microsecond keep their order."""
    ids = db.column("select howdah.new_id() from generate_series(1, 100)")
    counters = [id.int >> 42 & (1 << 20) - 1 for id in ids]
    first = counters[0]
    assert counters == [(first + n) % (1 << 20) for n in range(100)]


@pytest.mark.parametrize("schedule", [{"delay": HOUR}, {"run_at": datetime.now(UTC) + HOUR}])
def test_a_scheduled_job_is_in_line_once_it_is_due(db: Database, schedule: dict[str, Any]) -> None:
    job = db.enqueue("mail", **schedule)
    assert db.claim("mail") == []
    assert db.promote() == set()
    db.clock.advance(HOUR)
    assert db.promote() == {job}
    assert [claim.id for claim in db.claim("mail")] == [job]


@pytest.mark.parametrize(
    "past", [{"delay": -HOUR}, {"delay": timedelta()}, {"run_at": datetime(2020, 1, 1, tzinfo=UTC)}]
)
def test_a_job_scheduled_in_the_past_is_in_line_at_once(db: Database, past: dict[str, Any]) -> None:
    job = db.enqueue("mail", **past)
    assert [claim.id for claim in db.claim("mail")] == [job]


def test_a_delay_counts_from_the_clock_of_the_server(db: Database) -> None:
    job = db.enqueue("mail", delay=HOUR)
    row = db.job(job)
    assert row["run_at"] == row["created_at"] + HOUR


def test_enqueue_many_returns_ids_in_order_and_jobs_are_claimed_in_it(db: Database) -> None:
    ids = db.enqueue_many([{"job_type": "mail", "data": {"n": n}} for n in range(200)])
    assert len(set(ids)) == 200
    claims = db.claim("mail", batch=200)
    assert [claim.id for claim in claims] == ids
    assert [(claim.data or {})["n"] for claim in claims] == list(range(200))


def test_enqueue_many_gives_each_job_its_own_values(db: Database) -> None:
    chosen_id = uuid4()
    first, second, third = db.enqueue_many(
        [
            {"job_type": "mail"},
            {"job_type": "resize", "priority": 150, "max_attempts": 1, "id": str(chosen_id)},
            {"job_type": "mail", "delay": "1 hour", "data": {"a": 1}},
        ]
    )
    assert second == chosen_id
    assert (db.job(first)["priority"], db.job(first)["max_attempts"]) == (100, 3)
    assert (db.job(chosen_id)["priority"], db.job(chosen_id)["max_attempts"]) == (150, 1)
    assert db.job(third)["ready_at"] is None
    assert {claim.id for claim in db.claim("mail", "resize")} == {first, chosen_id}


def test_enqueue_many_enqueues_nothing_if_one_job_is_bad(db: Database) -> None:
    good: dict[str, Any] = {"job_type": "mail"}
    for bad in (
        {"job_type": ""},
        {},
        {"job_type": "mail", "data": [1]},
        5,
        {"job_type": "mail", "max_attempts": 0},
    ):
        with pytest.raises(psycopg.Error):
            db.value("select count(*) from howdah.enqueue_many(%s)", Jsonb([good, bad, good]))
    assert db.counted() == {}


@pytest.mark.parametrize("jobs", ['{"job_type": "mail"}', "5", "null", None])
def test_enqueue_many_takes_only_a_json_array(db: Database, jobs: str | None) -> None:
    with pytest.raises(psycopg.Error, match="must be a JSON array") as refused:
        db.value("select count(*) from howdah.enqueue_many(%s)", jobs)
    assert refused.value.sqlstate == "22023"


def test_enqueue_many_of_an_empty_array_returns_no_ids(db: Database) -> None:
    assert db.enqueue_many([]) == []


def test_a_payload_over_the_limit_is_refused(db: Database) -> None:
    large = {"a": "x" * 262_144}
    for enqueue in (
        lambda: db.enqueue("mail", large),
        lambda: db.enqueue_many([{"job_type": "mail"}, {"job_type": "mail", "data": large}]),
    ):
        with pytest.raises(psycopg.Error, match="the limit is 262144") as refused:
            enqueue()
        assert refused.value.sqlstate == "HW001"
        assert "reference" in (refused.value.diag.message_hint or "")
    assert db.counted() == {}


def test_the_payload_limit_is_exact_to_the_byte(db: Database) -> None:
    db.execute("update options set value = '1000' where name = 'max_payload_bytes'")
    db.enqueue("mail", {"a": "x" * 991})
    with pytest.raises(psycopg.Error, match="1001 bytes; the limit is 1000"):
        db.enqueue("mail", {"a": "x" * 992})
    db.execute("update options set value = '1001' where name = 'max_payload_bytes'")
    db.enqueue("mail", {"a": "x" * 992})
    assert len(db.claim("mail")) == 2


@pytest.mark.parametrize("value", ["999", "-1", "much"])
def test_the_limit_cannot_be_set_below_a_thousand_bytes(db: Database, value: str) -> None:
    with pytest.raises(psycopg.Error, match=r"a_payload_may_have_1000_bytes_at_least|integer"):
        db.execute("update options set value = %s where name = 'max_payload_bytes'", value)


def test_enqueue_is_part_of_the_transaction_of_the_caller(db: Database) -> None:
    other = db.session()
    with db.rolled_back():
        db.enqueue("mail")
        db.enqueue_many([{"job_type": "mail"}])
        assert other.claim("mail") == []
    assert other.claim("mail") == []
    with db.transaction():
        job = db.enqueue("mail")
        assert other.claim("mail") == []
    assert [claim.id for claim in other.claim("mail")] == [job]
