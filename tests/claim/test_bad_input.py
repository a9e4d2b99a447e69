"""A claim with bad arguments is refused and takes nothing."""

from __future__ import annotations

import psycopg
import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine

claims = pytest.mark.parametrize(
    "claim",
    [
        "claim_job_batch(%s::text, array['mail'], %s::int)",
        "claim_next(%s::text, %s::int, 'mail')",
    ],
)


@claims
@pytest.mark.parametrize("size", [0, -1, -(2**31), 10_001, 2**31 - 1, None])
def test_a_batch_has_1_to_10000_jobs(shared_db: Database, size: int | None, claim: str) -> None:
    shared_db.enqueue("mail")
    message = f"between 1 and 10000, not {'null' if size is None else size}$"
    with pytest.raises(psycopg.Error, match=f"(?m){message}") as refused:
        shared_db.rows(f"select * from {claim}", "first", size)
    assert refused.value.sqlstate == "22023"
    assert {state for _, state in shared_db.counted()} == {State.PENDING}


@pytest.mark.parametrize("size", ["2147483648", "1.5", "'many'"])
def test_a_batch_size_is_an_integer(shared_db: Database, size: str) -> None:
    with pytest.raises(psycopg.Error):
        shared_db.rows(f"select * from claim_job_batch('first', array['mail'], {size})")


@claims
@pytest.mark.parametrize("worker", [None, "", "w" * 201])
def test_a_worker_has_a_name(shared_db: Database, worker: str | None, claim: str) -> None:
    shared_db.enqueue("mail")
    with pytest.raises(psycopg.Error, match="p_worker_id must have 1 to 200 characters") as refused:
        shared_db.rows(f"select * from {claim}", worker, 10)
    assert refused.value.sqlstate == "22023"
    assert {state for _, state in shared_db.counted()} == {State.PENDING}


def test_the_types_must_be_given(shared_db: Database) -> None:
    with pytest.raises(psycopg.Error, match="p_job_types") as refused:
        shared_db.rows("select * from claim_job_batch('first', null)")
    assert refused.value.sqlstate == "22023"


def test_a_null_type_matches_no_job(shared_db: Database) -> None:
    assert shared_db.rows("select * from claim_job_batch('first', array[null]::text[])") == []
