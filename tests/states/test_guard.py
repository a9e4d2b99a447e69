"""The guard of the engine tests works: it refuses each kind of unlisted move.

A guard that allowed every move would weaken all those tests silently. So these tests make moves
that no verb may make, with the same statements as the verbs.
"""

from __future__ import annotations

import psycopg
import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine

REFUSED = "the guard refuses"


def test_an_unlisted_update_of_a_live_job_is_refused(db: Database) -> None:
    job = db.enqueue("mail")
    db.start(db.claim("mail"))
    with pytest.raises(psycopg.Error, match=f"{REFUSED}: a plain .* from running to claimed"):
        db.execute("update jobs_live set status = 'claimed'")
    assert db.state_of(job) is State.RUNNING


def test_an_unlisted_move_by_delete_and_insert_is_refused(db: Database) -> None:
    job = db.enqueue("mail")
    with pytest.raises(psycopg.Error, match="from pending to completed"):
        db.execute("select howdah.finish('completed', null, %s, null, p_fenced => false)", [job])
    assert db.state_of(job) is State.PENDING


def test_an_unlisted_plain_update_across_partitions_is_refused(db: Database) -> None:
    job = db.enqueue("mail")
    with pytest.raises(psycopg.Error, match="from pending to failed"):
        db.execute("update jobs set status = 'failed' where id = %s", job)
    assert db.state_of(job) is State.PENDING


def test_moving_a_finished_job_back_to_pending_is_refused(db: Database) -> None:
    job = db.enqueue("mail")
    db.complete(db.claim("mail"))
    with pytest.raises(psycopg.Error, match="from completed to pending"):
        db.execute("update jobs set status = 'pending' where id = %s", job)
    with pytest.raises(psycopg.Error, match="from completed to pending"):
        db.execute(
            "with gone as (delete from jobs_finished where id = %s returning *) "
            "insert into jobs_live (id, job_type) select id, job_type from gone",
            job,
        )
    assert db.state_of(job) is State.COMPLETED


def test_moving_a_finished_job_to_another_end_is_refused(db: Database) -> None:
    job = db.enqueue("mail")
    db.complete(db.claim("mail"))
    with pytest.raises(psycopg.Error, match="from completed to failed"):
        db.execute("update jobs set status = 'failed' where id = %s", job)
    assert db.state_of(job) is State.COMPLETED


def test_a_verb_cannot_make_the_move_of_another_verb(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.execute(
        "create or replace function howdah.start(p_worker_id text, p_ids uuid[], p_attempts int[], "
        "p_began_ago interval[] default null) returns setof uuid language sql security definer "
        "begin atomic select howdah.finish('completed', p_worker_id, p_ids, p_attempts); end"
    )
    with pytest.raises(psycopg.Error, match=r"start moved .* from claimed to completed"):
        db.start(claims)
    assert db.complete(claims) == {job}


def test_a_deleted_job_is_refused_at_commit(db: Database) -> None:
    job = db.enqueue("mail")
    with pytest.raises(psycopg.Error, match="was pending and is gone"):
        db.execute("delete from jobs where id = %s", job)
    assert db.state_of(job) is State.PENDING


@pytest.mark.parametrize("status", ["claimed", "running", "completed", "failed", "cancelled"])
def test_a_job_can_only_begin_as_pending(db: Database, status: str) -> None:
    worker = "worker" if status in ("claimed", "running") else None
    with pytest.raises(psycopg.Error, match=f"{REFUSED}: job .* began as {status}"):
        db.execute(
            "insert into jobs (job_type, status, worker_id) values ('mail', %s, %s)",
            status,
            worker,
        )
    assert db.counted() == {}


def test_the_listed_moves_pass(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    assert db.start(claims) == {job}
    assert db.fail(claims) == {job}
    assert db.requeue(job) == {job}
    assert db.complete(db.claim("mail")) == {job}
