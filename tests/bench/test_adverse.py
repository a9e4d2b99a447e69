"""Every adverse case can be measured, makes the disturbance that it names, and has its bound."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import LiteralString, cast

import pytest

from bench.adverse import never_analysed, open_transaction, unrelated_jobs
from bench.adverse.registry import CASES
from bench.cases import CaseContext
from bench.measure.prepared_peer import InvalidMeasurement
from bench.sample_jobs import MIXED
from bench.server import Postgres
from bench.testbed import Testbed
from tests.support.databases import Databases

JOBS = 200

COMPARED = [("at least", 0.95), ("at most", 1.25), ("at most", 1.5)]  # rate, p50, p99
HELD = [*COMPARED, ("below", 1.0), *COMPARED]  # under the transaction, and afterwards
SIZED = [*HELD, ("at most", 64.0), ("at most", 64.0)]  # MB
PROMISED = {
    "held_100": HELD,
    "held_800": HELD,
    "held_8000": HELD,
    "held_short_line": HELD,
    "held_line": SIZED,
    "held_long_line": HELD,
    "held_800_many": HELD,
    "held_short_line_many": HELD,
    "snapshot": HELD,
    "snapshot_line": HELD,
    "writer": HELD,
    "cursor": HELD,
    "dead_rows": [("at most", 1.25)] * 11,
    "server_restart": [("at most", 300.0)],
    "other_types": [("at least", 0.9)],
    "due_later": [("at least", 0.9)],
    "finished": [("at least", 0.9)],
    "many_priorities": [("at least", 0.7)],
    "many_types": [("at least", 0.7)],
    "scattered_types": [("at least", 0.7)],
    "never_analysed": [("at least", 0.9), ("at most", 1.5)],
    "mixed": [("at least", 0.6)],
    "idle_waits": [("at most", 1.1), ("at most", 20.0)],
}
PAIRED = [name for name, bounds in PROMISED.items() if bounds not in (HELD, SIZED)]
REGIMES = ["held_line", "held_800_many", "writer", "cursor"]  # one of each kind


@pytest.fixture
def context(databases: Databases) -> CaseContext:
    return CaseContext(Postgres(databases.server_dsn), scale=0.001, max_minutes=0.06, rounds=1)


@pytest.fixture
def testbed(context: CaseContext) -> Generator[Testbed]:
    with context.testbed() as testbed:
        yield testbed


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PAIRED, *REGIMES])
def test_every_case_can_be_measured(name: str, context: CaseContext) -> None:
    result = CASES[name].run(context)
    assert [(finding.sense, finding.bound) for finding in result.findings] == PROMISED[name]
    # ten waits may fit into memory that the process has already
    sizable = [finding for finding in result.findings if finding.unit != " KiB"]
    assert all(finding.measured > 0 for finding in sizable)
    assert {part.case for part in (*result.findings, *result.curves)} == {name}
    for curve in result.curves:
        assert curve.series
        assert all(curve.series.values())
        assert len(curve.series) == 2 or name not in PAIRED, "the baseline and the adverse side"


def test_no_case_is_left_out() -> None:
    assert list(CASES) == list(PROMISED)


OTHERS = "datname = current_database() and pid <> pg_backend_pid() and backend_type ~ 'client'"


def test_a_held_snapshot_keeps_dead_rows_from_vacuum(testbed: Testbed) -> None:
    with_snapshot = f"pg_stat_activity where {OTHERS} and backend_xmin is not null"
    with open_transaction.hold_snapshot(testbed):
        assert _count(testbed, with_snapshot) == 1
    assert _count(testbed, with_snapshot) == 0


def test_a_held_writer_has_a_transaction_id(testbed: Testbed) -> None:
    with open_transaction.hold_transaction_id(testbed):
        assert _count(testbed, f"pg_stat_activity where {OTHERS} and backend_xid is not null") == 1


def test_a_held_cursor_has_a_lock_on_jobs(testbed: Testbed) -> None:
    with open_transaction.hold_cursor(testbed):
        assert _count(testbed, "pg_locks where relation = 'howdah.jobs'::regclass") == 1


@pytest.mark.parametrize(
    ("add", "where", "size"),
    [
        (
            unrelated_jobs.add_other_types,
            "jobs_live where job_type <> 'noop' and ready_at is not null",
            1000,
        ),
        (
            unrelated_jobs.add_due_later,
            "jobs_live where job_type = 'noop' and ready_at is null",
            1000,
        ),
        (
            unrelated_jobs.add_finished,
            "jobs_finished where status = 'completed' and job_type = 'old'",
            5000,
        ),
    ],
)
def test_unrelated_jobs_are_there_before_the_drain_and_after_it(
    add: Callable[[CaseContext, Testbed], None],
    where: str,
    size: int,
    context: CaseContext,
    testbed: Testbed,
) -> None:
    add(context, testbed)
    assert _count(testbed, f"howdah.{where}") == size
    testbed.enqueue(JOBS)
    testbed.drain(JOBS)
    assert _count(testbed, f"howdah.{where}") == size


def test_of_mixed_jobs_some_fail_once_some_report_and_some_are_cancelled(testbed: Testbed) -> None:
    testbed.enqueue(JOBS, [MIXED])
    testbed.drain(JOBS, names=[MIXED])
    mixed = "howdah.jobs_finished where job_type = 'mixed' and"
    assert _count(testbed, f"{mixed} status = 'completed'") == JOBS * 99 // 100
    assert _count(testbed, f"{mixed} status = 'cancelled'") == JOBS // 100
    assert _count(testbed, f"{mixed} attempts = 2 and last_error is not null") == JOBS * 5 // 100
    assert _count(testbed, f"{mixed} current_stage = 'step 9'") == JOBS * 10 // 100


def test_without_autovacuum_means_every_table_of_the_engine(testbed: Testbed) -> None:
    testbed.execute(never_analysed.WITHOUT_AUTOVACUUM)
    tables = "pg_class where relnamespace = 'howdah'::regnamespace and relkind = 'r'"
    without = f"{tables} and 'autovacuum_enabled=off' = any (reloptions)"
    assert _count(testbed, tables) == _count(testbed, without) > 5


def test_a_claim_that_reads_the_whole_backlog_is_noticed(testbed: Testbed) -> None:
    """A claim reads few buffers. A claim that reads every waiting job does not."""
    with never_analysed.session_with_old_plans(testbed) as session:
        testbed.enqueue(20_000)
        few = never_analysed.buffers_of_a_claim(session)
        testbed.execute(
            "create or replace function howdah.claim_job_batch(p_worker_id text,"
            " p_job_types text[], p_batch_size int default 10) returns setof howdah.jobs"
            " language sql as $$ select * from howdah.jobs_live order by data::text limit 10 $$"
        )
        many = never_analysed.buffers_of_a_claim(session)
    assert 0 < few < 400
    assert many > few * never_analysed.BUFFERS_AT_MOST


def test_a_drain_in_which_a_job_ran_twice_does_not_count(testbed: Testbed) -> None:
    testbed.enqueue(1)  # number 0, which is in the drain too
    testbed.enqueue(JOBS)
    with pytest.raises(InvalidMeasurement, match=f"of {JOBS} jobs"):
        testbed.drain(JOBS)


def _count(testbed: Testbed, of: str) -> int:
    with testbed.connect() as connection:
        row = connection.execute(cast(LiteralString, f"select count(*) from {of}")).fetchone()
    assert row is not None
    return int(row[0])
