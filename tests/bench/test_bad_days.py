"""Every bad day can be measured, is really as bad as it says, and asks for what was promised."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import LiteralString, cast

import pytest

from bench.bad_days import crowded, held, never_analysed
from bench.bad_days.roster import CASES
from bench.cases import Stage
from bench.lots import MIXED
from bench.measure import Wrong
from bench.server import Postgres
from bench.yard import Claimed, Yard
from tests.support.databases import Databases

JOBS = 200

PROMISED = {
    "snapshot": [("at least", 0.95), ("at most", 1.25), ("below", 1.0)],
    "writer": [("at least", 0.9), ("at most", 1.25), ("below", 1.0)],
    "cursor": [("at least", 0.9), ("at most", 1.25), ("below", 1.0)],
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


@pytest.fixture
def stage(databases: Databases) -> Stage:
    return Stage(Postgres(databases.server_dsn), scale=0.001, most_minutes=0.06, rounds=1)


@pytest.fixture
def yard(stage: Stage) -> Generator[Yard]:
    with stage.yard() as made:
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISED)
def test_every_bad_day_can_be_measured(name: str, stage: Stage) -> None:
    seen = CASES[name].run(stage)
    assert [(one.sense, one.bound) for one in seen.findings] == PROMISED[name]
    assert all(one.measured > 0 for one in seen.findings)
    assert {one.case for one in (*seen.findings, *seen.curves)} == {name}
    for curve in seen.curves:
        assert len(curve.lines) == 2, "the good day and the bad one"
        assert all(curve.lines.values())


def test_no_bad_day_is_left_out() -> None:
    assert list(CASES) == list(PROMISED)


OTHERS = "datname = current_database() and pid <> pg_backend_pid() and backend_type ~ 'client'"


def test_a_held_snapshot_holds_back_what_may_be_cleaned(yard: Yard) -> None:
    old = f"pg_stat_activity where {OTHERS} and backend_xmin is not null"
    with held.a_snapshot(yard):
        assert _count(yard, old) == 1
    assert _count(yard, old) == 0


def test_a_held_writer_has_a_transaction_id(yard: Yard) -> None:
    with held.a_writer(yard):
        assert _count(yard, f"pg_stat_activity where {OTHERS} and backend_xid is not null") == 1


def test_a_held_cursor_has_a_lock_on_jobs(yard: Yard) -> None:
    with held.a_cursor(yard):
        assert _count(yard, "pg_locks where relation = 'howdah.jobs'::regclass") == 1


@pytest.mark.parametrize(
    ("crowd", "where", "size"),
    [
        (
            crowded.of_other_types,
            "jobs_live where job_type <> 'noop' and ready_at is not null",
            1000,
        ),
        (crowded.due_later, "jobs_live where job_type = 'noop' and ready_at is null", 1000),
        (crowded.finished, "jobs_finished where status = 'completed' and job_type = 'old'", 5000),
    ],
)
def test_the_crowd_is_there_before_the_drain_and_after_it(
    crowd: Callable[[Stage, Yard], None], where: str, size: int, stage: Stage, yard: Yard
) -> None:
    crowd(stage, yard)
    assert _count(yard, f"howdah.{where}") == size
    yard.enqueue(JOBS)
    yard.drain(JOBS)
    assert _count(yard, f"howdah.{where}") == size


def test_of_mixed_jobs_some_fail_once_some_report_and_some_are_cancelled(yard: Yard) -> None:
    yard.enqueue(JOBS, [MIXED])
    yard.drain(JOBS, names=[MIXED])
    found = "howdah.jobs_finished where job_type = 'mixed' and"
    assert _count(yard, f"{found} status = 'completed'") == JOBS * 99 // 100
    assert _count(yard, f"{found} status = 'cancelled'") == JOBS // 100
    assert _count(yard, f"{found} attempts = 2 and last_error is not null") == JOBS * 5 // 100
    assert _count(yard, f"{found} current_stage = 'step 9'") == JOBS * 10 // 100


def test_without_autovacuum_means_every_table_of_the_engine(yard: Yard) -> None:
    yard.execute(never_analysed.WITHOUT_AUTOVACUUM)
    tables = "pg_class where relnamespace = 'howdah'::regnamespace and relkind = 'r'"
    without = f"{tables} and 'autovacuum_enabled=off' = any (reloptions)"
    assert _count(yard, tables) == _count(yard, without) > 5


def test_a_claim_that_reads_the_whole_backlog_is_noticed(yard: Yard) -> None:
    """The buffers of a claim stay few; those of a look at everything do not."""
    with never_analysed.probe(yard) as session:
        yard.enqueue(20_000)
        few = never_analysed.buffers_of_a_claim(session)
        yard.execute(
            "create or replace function howdah.claim_job_batch(p_worker_id text,"
            " p_job_types text[], p_batch_size int default 10) returns setof howdah.jobs"
            " language sql as $$ select * from howdah.jobs_live order by data::text limit 10 $$"
        )
        many = never_analysed.buffers_of_a_claim(session)
    assert 0 < few < 400
    assert many > few * never_analysed.BUFFERS_AT_MOST


def test_a_drain_in_which_a_job_ran_twice_does_not_count(yard: Yard) -> None:
    yard.enqueue(1)  # number 0, which the drain will have too
    yard.enqueue(JOBS)
    with pytest.raises(Wrong, match=f"of {JOBS} jobs"):
        yard.drain(JOBS)


def test_every_claim_of_the_worker_is_timed(yard: Yard) -> None:
    yard.enqueue(JOBS)
    with yard.worker(claims=True) as worker:
        yard.watch(worker, JOBS)
        claims = worker.claims()
    assert sum(one.jobs for one in claims) == JOBS
    assert all(one.took_ns > 0 for one in claims)
    assert claims == sorted(claims)


def watched(*claims: tuple[float, float, int]) -> held.Watched:
    """Ten seconds, of which the first and the last are compared; claims in s, ms and jobs."""
    return held.Watched(
        bad_time=10.0,
        window=1.0,
        good=[(1.0, 1000.0)],
        bad=[(float(second), 1000.0 - 50 * second) for second in range(1, 11)],
        held_at_ns=5_000_000_000,
        claims=[
            Claimed(5_000_000_000 + int(at * 1e9), int(ms * 1e6), jobs) for at, ms, jobs in claims
        ],
    )


def test_the_last_minute_is_compared_with_the_first() -> None:
    steady = [(second + 0.5, 2.0, 10) for second in range(10)]
    rate, p99, pause = watched(*steady, (9.6, 5.0, 10)).findings("snapshot", "title", 0.95)
    assert rate.measured == round(500 / 950, 3)
    assert p99.measured == 2.5
    assert pause.measured == 1.0


def test_a_stall_is_the_longest_time_without_a_claimed_job() -> None:
    claims = [(0.1, 1.0, 5), (4.1, 1.0, 5), (7.0, 1.0, 0), (9.9, 1.0, 5)]
    *_, pause = watched(*claims).findings("snapshot", "title", 0.95)
    assert pause.measured == 5.8


def _count(yard: Yard, of: str) -> int:
    with yard.connect() as connection:
        row = connection.execute(cast(LiteralString, f"select count(*) from {of}")).fetchone()
    assert row is not None
    return int(row[0])
