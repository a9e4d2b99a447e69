"""Foreign workers that use only SQL share a queue with howdah's workers.

Sixteen sessions of psycopg send the contract's plain statements, while two worker processes of
howdah claim jobs of the same type. psql inserts the jobs. At the end every job has ended once,
each attempt was claimed once, in priority order, and nothing is lost.
"""

from __future__ import annotations

import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from uuid import UUID

import psycopg
import pytest

from howdah import Queue, State
from howdah.embedded import find_psql
from tests.support.processes import worker_process
from tests.support.waiting import eventually

SESSIONS = 16
JOBS = 4000

COMPLETE = "UPDATE jobs SET status='completed', progress=100, completed_at=now() WHERE id=%s"
FAIL = """UPDATE jobs
          SET status = CASE WHEN attempts >= max_attempts THEN 'failed' ELSE 'pending' END,
          last_error=%s, worker_id=NULL, claimed_at=NULL WHERE id=%s"""
RECOVER = """UPDATE jobs SET status='pending', worker_id=NULL, claimed_at=NULL
             WHERE status IN ('claimed','running') AND claimed_at < now() - %s::interval
             AND attempts < max_attempts"""

Claimed = list[tuple[UUID, int]]


def foreign_worker(dsn: str, name: str, seed: int) -> Claimed:
    """Claim and settle with plain SQL until no job is left; returns its claims."""
    rng = random.Random(seed)
    claimed: Claimed = []
    with psycopg.connect(dsn, autocommit=True) as session:
        session.execute("set search_path = howdah, public")
        empty = 0
        while empty < 5:
            rows = session.execute(
                "select id, priority, attempts from claim_job_batch(%s, %s, %s)",
                (name, ["shared"], rng.choice([1, 10, 50])),
            ).fetchall()
            empty = 0 if rows else empty + 1
            priorities = [priority for _, priority, _ in rows]
            assert priorities == sorted(priorities, reverse=True)
            for id, _, attempt in rows:
                claimed.append((id, attempt))
                if attempt == 1 and rng.random() < 0.1:
                    session.execute(FAIL, ("try again", id))
                else:
                    session.execute(COMPLETE, (id,))
            session.execute(RECOVER, ("1 hour",))
    return claimed


def insert_with_psql(dsn: str) -> None:
    psql = find_psql()
    if psql is None:
        pytest.fail("no psql could be found: this story needs it")
    script = f"""
        set search_path = howdah, public;
        INSERT INTO jobs (job_type, priority, data)
        SELECT 'shared', (array[30, 100, 150])[1 + n % 3], jsonb_build_object('n', n)
        FROM generate_series(1, {JOBS}) AS n;
    """
    done = subprocess.run(
        [str(psql), "-v", "ON_ERROR_STOP=1", "-q", dsn],
        input=script,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


async def test_every_job_is_claimed_once_per_attempt_and_none_is_lost(
    queue: Queue, dsn: str
) -> None:
    insert_with_psql(dsn)
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(SESSIONS))
        sessions = [threads.submit(foreign_worker, dsn, f"foreign-{n}", n) for n in range(SESSIONS)]
        for _ in range(2):
            stack.enter_context(worker_process(dsn, "tests.stories.app:queue"))

        async def all_done() -> bool:
            return (await queue.counts())["shared"] == {State.COMPLETED: JOBS}

        await eventually(all_done)
        claimed = [lease for session in sessions for lease in session.result(timeout=30)]

    assert len(claimed) == len(set(claimed)), "an attempt was claimed twice"
    rows = await queue.store.fetch(
        "select id, attempts, worker_id from howdah.jobs where job_type = 'shared'"
    )
    assert len(rows) == JOBS
    assert {row["attempts"] for row in rows} <= {1, 2}
    by_foreign = {id for id, _ in claimed}
    by_ours = {row["id"] for row in rows if "foreign" not in row["worker_id"]}
    assert by_foreign, "the foreign sessions claimed jobs"
    assert by_foreign | by_ours == {row["id"] for row in rows}
