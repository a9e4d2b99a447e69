"""Steps are found by the ids of their jobs, however many there are; prune reads no other jobs."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.plans.explain import buffers, read_by
from tests.support import Claimed, Database

pytestmark = [pytest.mark.engine, pytest.mark.plan]

MANY = 20_000


@pytest.fixture
def lease(db: Database) -> Claimed:
    """A claimed job beside many steps of many other jobs; the tables were never analysed."""
    db.execute("alter table job_steps set (autovacuum_enabled = off)")
    db.enqueue("mail")
    (claim,) = db.claim("mail")
    db.wait_for(claim, "go")  # the plans are made while the table is small
    db.execute(
        "insert into job_steps (job_id, kind, name, number, attempt, started_at) "
        f"select new_id(), 'step', 'a', 1, 1, now() from generate_series(1, {MANY})"
    )
    db.execute(
        "insert into job_signals (job_id, name, sent_at) "
        f"select new_id(), 'go', now() from generate_series(1, {MANY})"
    )
    return claim


@pytest.mark.parametrize("table", ["job_steps", "job_signals", "jobs_live"])
def test_each_call_reads_the_rows_of_its_job_alone(
    db: Database, lease: Claimed, table: str
) -> None:
    def calls() -> None:
        db.value("select count(*) from load_steps(%s)", [lease.id])
        db.save_step(lease)
        db.wait_for(lease, "go")
        db.signal(lease.id, "other")
        db.suspend(lease, ("signal", "go", 1))
        db.signal(lease.id, "go")

    read = read_by(db, calls, table)
    assert read.seq_scans == 0
    assert read.rows < 60


def test_forgetting_steps_reads_no_jobs_that_have_none(db: Database) -> None:
    db.execute(
        "insert into jobs (job_type, status) "
        f"select 'mail', 'pending' from generate_series(1, {MANY})"
    )
    few = buffers(db, "select forget_steps()")
    job: UUID = db.column("select id from jobs limit 1")[0]
    db.execute(
        "insert into job_steps (job_id, kind, name, number, attempt, started_at) "
        "values (%s, 'step', 'a', 1, 1, now())",
        job,
    )
    assert buffers(db, "select forget_steps()") < few + 100
    assert read_by(db, lambda: db.value("select forget_steps()"), "jobs_live").seq_scans == 0
