"""Bad input in plain SQL is refused by a constraint whose name says why, and changes nothing."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine

JOB_TYPE = "job_type_is_1_to_200_characters_none_of_them_control"
STATUS = "status_is_pending_claimed_running_completed_failed_or_cancelled"

REFUSED_INSERTS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown status": ({"status": "done"}, STATUS),
    "status of another case": ({"status": "Pending"}, STATUS),
    "no status": ({"status": None}, "status"),
    "empty type": ({"job_type": ""}, JOB_TYPE),
    "overlong type": ({"job_type": "x" * 201}, JOB_TYPE),
    "newline in the type": ({"job_type": "ma\nil"}, JOB_TYPE),
    "escape in the type": ({"job_type": "ma\x1bil"}, JOB_TYPE),
    "delete in the type": ({"job_type": "ma\x7fil"}, JOB_TYPE),
    "no type": ({"job_type": None}, "job_type"),
    "payload is a list": ({"data": Jsonb([1])}, "data_is_a_json_object"),
    "payload is a string": ({"data": Jsonb("x")}, "data_is_a_json_object"),
    "payload is JSON null": ({"data": Jsonb(None)}, "data_is_a_json_object"),
    "no payload": ({"data": None}, "data"),
    "payload is not JSON": ({"data": "{"}, "json"),
    "payload has NaN": ({"data": '{"a": NaN}'}, "json"),
    "payload has a NUL": ({"data": '{"a": "\\u0000"}'}, "Unicode escape"),
    "payload too large": ({"data": Jsonb({"a": "x" * 262_144})}, "the limit is 262144"),
    "priority over int": ({"priority": 2147483648}, "out of range"),
    "priority under int": ({"priority": -2147483649}, "out of range"),
    "priority is a word": ({"priority": "high"}, "integer"),
    "no attempts allowed": ({"max_attempts": 0}, "max_attempts_is_at_least_1"),
    "negative attempts allowed": ({"max_attempts": -1}, "max_attempts_is_at_least_1"),
    "negative attempts": ({"attempts": -1}, "attempts_is_not_negative"),
    "negative progress": ({"progress": -1}, "progress_is_0_to_100"),
    "progress over 100": ({"progress": 101}, "progress_is_0_to_100"),
    "pending but held": ({"worker_id": "somebody"}, "pending_means_held_by_nobody"),
    "worker without a name": (
        {"status": "claimed", "worker_id": ""},
        "worker_id_is_1_to_200_characters",
    ),
    "no such day": ({"run_at": "2026-02-30T10:00:00Z"}, "out of range"),
}


@pytest.mark.parametrize("case", REFUSED_INSERTS)
def test_a_bad_insert_is_refused(shared_db: Database, case: str) -> None:
    bad, constraint = REFUSED_INSERTS[case]
    row = {"job_type": "mail", **bad}
    before = shared_db.counted()
    with pytest.raises(psycopg.Error, match=constraint):
        shared_db.execute(
            f"insert into jobs ({', '.join(row)}) values ({', '.join(['%s'] * len(row))})",
            *row.values(),
        )
    assert shared_db.counted() == before == shared_db.depth()


@pytest.mark.parametrize("status", ["claimed", "running"])
def test_an_insert_of_a_held_job_without_a_worker_is_refused(dsn: str, status: str) -> None:
    with closing(Database(dsn)) as unguarded:  # the guard of the tests would refuse it first
        with pytest.raises(psycopg.errors.CheckViolation, match=f"{status} without a worker_id"):
            unguarded.execute("insert into jobs (job_type, status) values ('mail', %s)", status)
        assert unguarded.value("select count(*) from jobs") == 0


def test_one_bad_row_refuses_the_whole_insert(shared_db: Database) -> None:
    before = shared_db.counted()
    with pytest.raises(psycopg.Error, match=JOB_TYPE):
        shared_db.plain("INSERT INTO jobs (job_type) VALUES ('good'), (''), ('good')")
    assert shared_db.counted() == before


REFUSED_UPDATES: dict[str, tuple[str, str]] = {
    "unknown status": ("status = 'done'", STATUS),
    "no status": ("status = null", "status"),
    "unknown status by cast": ("status = 'retrying'::text", STATUS),
    "negative progress": ("progress = -1", "progress_is_0_to_100"),
    "progress over 100": ("progress = 1000", "progress_is_0_to_100"),
    "payload is a list": ("data = '[]'", "data_is_a_json_object"),
    "no attempts allowed": ("max_attempts = 0", "max_attempts_is_at_least_1"),
    "held without a worker": ("worker_id = null", "pending_means_held_by_nobody"),
    "type with a newline": (r"job_type = e'a\nb'", JOB_TYPE),
}


@pytest.mark.parametrize("case", REFUSED_UPDATES)
def test_a_bad_update_is_refused(db: Database, case: str) -> None:
    change, constraint = REFUSED_UPDATES[case]
    job = db.enqueue("mail")
    claims = db.claim("mail")
    before = db.job(job)
    with pytest.raises(psycopg.Error, match=constraint):
        db.execute(f"update jobs set {change} where id = %s", job)
    assert db.job(job) == before
    assert db.complete(claims) == {job}


def test_an_unknown_status_is_refused_for_a_finished_job_too(db: Database) -> None:
    job = db.enqueue("mail")
    db.complete(db.claim("mail"))
    with pytest.raises(psycopg.errors.CheckViolation, match=STATUS):
        db.execute("update jobs set status = 'archived' where id = %s", job)
    assert db.state_of(job) is State.COMPLETED


@pytest.mark.parametrize("status", ["claimed", "running"])
def test_a_finished_job_cannot_become_held_without_a_worker(db: Database, status: str) -> None:
    job = db.enqueue("mail")
    db.complete(db.claim("mail"))
    before = db.job(job)
    with pytest.raises(psycopg.errors.CheckViolation, match=f"{status} without a worker_id"):
        db.execute("update jobs set status = %s, worker_id = null where id = %s", status, job)
    assert db.job(job) == before


HOSTILE = [
    "'; drop table jobs; --",
    '"; drop schema howdah cascade; --',
    "$$ quoted $$",
    "back\\slash",
    "%s %d {} $1 :name",
    "null",
    "Ω≈ç√ 漢字 🐘 é",
    "a" * 200,
    "‮right to left",
    " spaces around ",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_special_characters_are_stored_unchanged(shared_db: Database, text: str) -> None:
    payload = {text: text, "nested": [{text: text}]}
    job = shared_db.value(
        "insert into jobs (job_type, data) values (%s, %s) returning id", text, Jsonb(payload)
    )
    (claim,) = shared_db.claim(text, worker=text)
    assert (claim.id, claim.job_type, claim.worker_id) == (job, text, text)
    assert claim.data == payload
    shared_db.progress([claim], 50, text)
    shared_db.emit([claim], text, {text: text})
    shared_db.fail([claim], text, text)
    row = shared_db.job(job)
    assert (row["current_stage"], row["last_error"]) == (text, text)
    assert row["errors"][0]["traceback"] == text
    (event,) = shared_db.rows("select kind, data from job_events where job_id = %s", job)
    assert event == {"kind": text, "data": {text: text}}
