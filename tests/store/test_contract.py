"""The relation `jobs` has the columns, types and defaults that other programs rely on."""

from __future__ import annotations

from typing import NamedTuple

import psycopg
import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine


class Column(NamedTuple):
    type: str
    not_null: bool
    default: str | None


# The promised type, nullability and default of each column. Default None: the column has none.
PROMISED: dict[str, Column] = {
    "id": Column("uuid", True, "howdah.new_id()"),
    "job_type": Column("text", True, None),
    "priority": Column("integer", True, "100"),
    "status": Column("text", True, "'pending'"),
    "data": Column("jsonb", True, "'{}'"),
    "progress": Column("integer", True, "0"),
    "current_stage": Column("text", False, None),
    "events_count": Column("integer", True, "0"),
    "worker_id": Column("text", False, None),
    "claimed_at": Column("timestamp with time zone", False, None),
    "created_at": Column("timestamp with time zone", True, "now()"),
    "started_at": Column("timestamp with time zone", False, None),
    "completed_at": Column("timestamp with time zone", False, None),
    "attempts": Column("integer", True, "0"),
    "max_attempts": Column("integer", True, "3"),
    "last_error": Column("text", False, None),
}


@pytest.mark.parametrize("name", PROMISED)
def test_a_column_is_as_promised(shared_db: Database, name: str) -> None:
    (column,) = shared_db.rows(
        "select format_type(coalesce(nullif(t.typbasetype, 0), t.oid), null) as type, "
        "a.attnotnull as not_null, pg_get_expr(d.adbin, d.adrelid) as default "
        "from pg_attribute as a join pg_type as t on t.oid = a.atttypid "
        "left join pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum "
        "where a.attrelid = 'jobs'::regclass and a.attname = %s",
        name,
    )
    promised = PROMISED[name]
    assert (column["type"], column["not_null"]) == (promised.type, promised.not_null)
    if promised.default is None:
        assert column["default"] is None
    else:
        assert column["default"].split("::")[0] in (
            promised.default,
            promised.default.removeprefix("howdah."),
        )


def test_a_bare_insert_gets_every_default(db: Database) -> None:
    db.plain("INSERT INTO jobs (job_type) VALUES ($1)", "mail")
    (row,) = db.rows("select *, created_at = ready_at as in_line from jobs")
    assert row["id"].version == 7
    assert row["in_line"]
    assert {name: row[name] for name in PROMISED if name not in ("id", "created_at")} == {
        "job_type": "mail",
        "priority": 100,
        "status": "pending",
        "data": {},
        "progress": 0,
        "current_stage": None,
        "events_count": 0,
        "worker_id": None,
        "claimed_at": None,
        "started_at": None,
        "completed_at": None,
        "attempts": 0,
        "max_attempts": 3,
        "last_error": None,
    }


def test_an_id_is_unique_in_jobs(db: Database) -> None:
    job = db.enqueue("mail")
    with pytest.raises(psycopg.errors.UniqueViolation):
        db.plain("INSERT INTO jobs (id, job_type) VALUES ($1, 'mail')", job)
    assert len(db.rows("select from jobs where id = %s", job)) == 1


def test_claim_job_batch_has_the_promised_signature(shared_db: Database) -> None:
    (function,) = shared_db.rows(
        "select pg_get_function_arguments(oid) as arguments, pg_get_function_result(oid) as result "
        "from pg_proc where proname = 'claim_job_batch'"
    )
    assert function["arguments"] == (
        "p_worker_id text, p_job_types text[], p_batch_size integer DEFAULT 10"
    )
    assert function["result"] == "SETOF jobs"


@pytest.mark.parametrize("status", list(State))
def test_jobs_can_be_selected_by_every_state(shared_db: Database, status: State) -> None:
    assert shared_db.plain("SELECT * FROM jobs WHERE status = $1", str(status)) == 0
