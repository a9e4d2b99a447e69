"""Every workload runs with howdah, leaves a record, and counts only if every job ran once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from bench.aggregate import aggregate
from bench.compare import parse, run, save
from bench.install import install
from bench.measure.enqueue import enqueue
from bench.measure.prepared_peer import InvalidMeasurement, prepare
from bench.measure.run import drain
from bench.measure.workload import measure
from bench.peer import Plan
from bench.peers.registry import PEERS
from bench.record import FILE, read
from bench.server import NotQuiet, Postgres
from tests.support.databases import Databases

HOWDAH = PEERS["howdah"]
JOBS = 300
LOCK = 20_181
VACUUMED = "select sum(vacuum_count) from pg_stat_user_tables where schemaname = 'howdah'"


@pytest.fixture
def postgres(databases: Databases) -> Postgres:
    return Postgres(databases.server_dsn)


@pytest.mark.parametrize("workload", HOWDAH.workloads)
def test_every_workload_runs_with_howdah(workload: str, postgres: Postgres) -> None:
    planned = HOWDAH.workloads[workload]
    jobs = 10 if workload == "pickup" else JOBS
    plan = replace(planned, jobs=jobs, processes=min(planned.processes, 3))
    with prepare(HOWDAH, install(HOWDAH), postgres, None) as prepared:
        timing = measure(workload, plan, prepared)
    assert timing.jobs == jobs
    if workload == "pickup":
        assert len(timing.pickups_ms) == jobs
        assert all(ms > 0 for ms in timing.pickups_ms)
    else:
        assert timing.seconds > 0


@pytest.mark.parametrize(("workload", "vacuumed"), [("drain_1", True), ("drain_after_load", False)])
def test_only_a_drain_after_the_load_begins_on_tables_that_were_not_vacuumed(
    workload: str, vacuumed: bool, postgres: Postgres
) -> None:
    with prepare(HOWDAH, install(HOWDAH), postgres, None) as prepared:
        measure(workload, Plan(JOBS), prepared)
        with psycopg.connect(prepared.store.address, autocommit=True) as connection:
            row = connection.execute(VACUUMED).fetchone()
    assert row is not None
    assert (row[0] > 0) == vacuumed


def test_a_server_is_not_quiet_while_autovacuum_is_at_work(
    postgres: Postgres, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An advisory lock stands for autovacuum: it cannot be made to work for as long as needed."""
    at_work = f"select 1 from pg_locks where locktype = 'advisory' and objid = {LOCK}"
    monkeypatch.setattr("bench.server.AUTOVACUUM_WORKERS", at_work)
    monkeypatch.setattr("bench.server.QUIET_WITHIN", 0.1)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pg_advisory_lock(%s)", [LOCK])
        with pytest.raises(NotQuiet, match="autovacuum"):
            postgres.make_quiet(dsn, vacuum=False)
        connection.execute("select pg_advisory_unlock(%s)", [LOCK])
        postgres.make_quiet(dsn, vacuum=False)


def test_a_run_leaves_a_record_with_all_that_was_asked_for(
    postgres: Postgres, tmp_path: Path
) -> None:
    arguments = ["--only", "howdah", "--workload", "enqueue_bulk,drain_1", "--jobs", str(JOBS)]
    choice = parse([*arguments, "--turns", "2"])
    record = run(choice, postgres, "the command")
    save(record, tmp_path / "record")
    assert read(tmp_path / "record") == record
    assert {path.name for path in (tmp_path / "record").iterdir()} == {
        FILE,
        "summary.md",
        "plot.svg",
    }
    assert record.trial
    assert record.problems() == []
    assert record.command == "the command"
    assert record.peers["howdah"].versions.keys() >= {"python", "asyncpg"}
    assert [(done.workload, done.turn, done.jobs) for done in record.measurements] == [
        ("enqueue_bulk", 1, JOBS),
        ("drain_1", 1, JOBS),
        ("enqueue_bulk", 2, JOBS),
        ("drain_1", 2, JOBS),
    ]
    assert set(aggregate(record.measurements)) >= {
        ("howdah", "enqueue_bulk"),
        ("howdah", "drain_1"),
    }
    assert record.quiet


def test_a_drain_in_which_a_job_ran_twice_does_not_count(postgres: Postgres) -> None:
    """One job is enqueued a second time, and only the count shows it."""
    without_finished = replace(HOWDAH, finished=None)
    with prepare(without_finished, install(HOWDAH), postgres, None) as prepared:
        prepared.run("enqueue_bulk", 1)  # number 0, which is in the drain too
        with pytest.raises(InvalidMeasurement, match="ran 11 times for 10 jobs"):
            drain(Plan(10), prepared)


def test_jobs_that_are_missing_do_not_count_as_enqueued(postgres: Postgres) -> None:
    with_wrong_count = replace(HOWDAH, unfinished="select 9")
    with (
        prepare(with_wrong_count, install(HOWDAH), postgres, None) as prepared,
        pytest.raises(InvalidMeasurement, match="9 of 10 jobs were enqueued"),
    ):
        enqueue("enqueue_bulk", Plan(10), prepared)


def test_a_peer_that_cannot_be_had_is_reported_and_the_others_are_measured(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bench.install.WORK_FOLDER", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # where there is no Node
    arguments = ["--only", "graphile_worker,howdah", "--workload", "enqueue_bulk", "--jobs", "10"]
    record = run(parse([*arguments, "--turns", "1"]), postgres, "")
    assert [done.peer for done in record.measurements] == ["howdah"]
    assert record.problems() == [
        "Graphile Worker: there is no Node with npm on this machine: install Node 22"
    ]


def test_a_driver_that_breaks_is_reported_and_the_others_are_measured(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = replace(HOWDAH, workloads={"enqueue_bulk": Plan(10, options={"run": "unknown"})})
    monkeypatch.setitem(PEERS, "howdah", broken)
    arguments = ["--only", "howdah", "--workload", "enqueue_bulk", "--turns", "2"]
    record = run(parse(arguments), postgres, "")
    assert len(record.problems()) == 2
    assert "KeyError: 'unknown'" in record.problems()[0]
