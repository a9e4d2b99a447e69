"""Progress and events of a running job can be read by SQL while it runs."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support import Database

pytestmark = pytest.mark.engine


def events(db: Database, job: UUID, above: int = 0) -> list[tuple[int, str, Any, int]]:
    rows = db.rows(
        "select number, kind, data, attempt from job_events "
        "where job_id = %s and number > %s order by number",
        job,
        above,
    )
    return [(row["number"], row["kind"], row["data"], row["attempt"]) for row in rows]


def test_progress_and_stage_can_be_read_while_the_job_runs(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.start(claims)
    assert db.progress(claims, 40, "encoding") == {job}
    other = db.session()
    assert (other.job(job)["progress"], other.job(job)["current_stage"]) == (40, "encoding")


def test_a_value_that_is_not_given_stays(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.progress(claims, 40, "encoding")
    db.progress(claims, 60)
    assert (db.job(job)["progress"], db.job(job)["current_stage"]) == (60, "encoding")
    db.progress(claims, stage="sending")
    assert (db.job(job)["progress"], db.job(job)["current_stage"]) == (60, "sending")


@pytest.mark.parametrize("percent", [-1, 101])
def test_progress_is_0_to_100(db: Database, percent: int) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    with pytest.raises(psycopg.errors.CheckViolation, match="progress_is_0_to_100"):
        db.progress(claims, percent)
    assert db.job(job)["progress"] == 0


def test_events_are_numbered_per_job_in_the_order_given(db: Database) -> None:
    db.enqueue_many([{"job_type": "mail"}] * 2)
    first, second = db.claim("mail")
    ids = [first.id, second.id, first.id, first.id, second.id]
    changed = db.column(
        "select howdah.emit('worker', %s::uuid[], %s::int[], %s::text[], %s::jsonb[])",
        ids,
        [1] * 5,
        ["a", "b", "c", "d", "e"],
        [Jsonb({"n": 1}), None, Jsonb([]), Jsonb("x"), Jsonb(5)],
    )
    assert set(changed) == {first.id, second.id}
    assert events(db, first.id) == [(1, "a", {"n": 1}, 1), (2, "c", [], 1), (3, "d", "x", 1)]
    assert events(db, second.id) == [(1, "b", None, 1), (2, "e", 5, 1)]
    assert [db.job(id)["events_count"] for id in (first.id, second.id)] == [3, 2]


def test_a_reader_can_continue_after_a_number(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    for n in range(5):
        db.emit(claims, "tick", n)
    assert [data for _, _, data, _ in events(db, job, above=3)] == [3, 4]


def test_the_numbers_continue_over_attempts(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.emit(claims, "first")
    db.retry(claims)
    claims = db.claim("mail")
    db.emit(claims, "second")
    db.complete(claims)
    assert [(number, attempt) for number, _, _, attempt in events(db, job)] == [(1, 1), (2, 2)]
    assert db.job(job)["events_count"] == 2


def test_a_refused_batch_writes_no_event(db: Database) -> None:
    job = db.enqueue("mail")
    (claim,) = db.claim("mail")
    with pytest.raises(psycopg.errors.NotNullViolation):
        db.execute(
            "select howdah.emit('worker', %s::uuid[], %s::int[], %s::text[], null)",
            [claim.id, claim.id],
            [1, 1],
            ["good", None],
        )
    assert events(db, job) == []
    assert db.job(job)["events_count"] == 0


def test_reports_update_no_index(db: Database) -> None:
    db.enqueue("mail")
    claims = db.claim("mail")
    updates = (
        "select n_tup_upd as all, n_tup_hot_upd as hot from pg_stat_xact_user_tables "
        "where relid = 'jobs_live'::regclass"
    )
    with db.transaction():
        (before,) = db.rows(updates)
        db.start(claims)
        db.progress(claims, 10, "x")
        db.emit(claims, "y")
        (after,) = db.rows(updates)
    # an update that touches no indexed column stays on its page: it is HOT
    assert {name: after[name] - before[name] for name in after} == {"all": 3, "hot": 3}
