"""Every work can be done with howdah, leaves a record, and counts only if every job ran once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import measure
from bench.compare import parse, publish, run
from bench.figures import figures
from bench.install import install
from bench.measure import Wrong, prepared
from bench.peer import Plan
from bench.peers.roster import ROSTER
from bench.record import FILE, read
from bench.server import Postgres
from tests.support.databases import Databases

HOWDAH = ROSTER["howdah"]
JOBS = 300


@pytest.fixture
def postgres(databases: Databases) -> Postgres:
    return Postgres(databases.server_dsn)


@pytest.mark.parametrize("work", HOWDAH.works)
def test_every_work_can_be_done_with_howdah(work: str, postgres: Postgres) -> None:
    planned = HOWDAH.works[work]
    jobs = 10 if work == "pickup" else JOBS
    plan = replace(planned, jobs=jobs, processes=min(planned.processes, 3))
    with prepared(HOWDAH, install(HOWDAH), postgres, None) as ground:
        taken = measure.measure(work, plan, ground)
    assert taken.jobs == jobs
    if work == "pickup":
        assert len(taken.pickups_ms) == jobs
        assert all(ms > 0 for ms in taken.pickups_ms)
    else:
        assert taken.seconds > 0


def test_a_run_leaves_a_record_with_all_that_was_asked_for(
    postgres: Postgres, tmp_path: Path
) -> None:
    asked = ["--only", "howdah", "--work", "enqueue_bulk,drain_1", "--jobs", str(JOBS)]
    choice = parse([*asked, "--repetitions", "2"])
    record = run(choice, postgres, "the command")
    publish(record, tmp_path / "record")
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
    assert [(one.work, one.repetition, one.jobs) for one in record.measurements] == [
        ("enqueue_bulk", 1, JOBS),
        *[("drain_1", 1, JOBS)] * 3,
        ("enqueue_bulk", 2, JOBS),
        *[("drain_1", 2, JOBS)] * 3,
    ]
    assert set(figures(record.measurements)) == {("howdah", "enqueue_bulk"), ("howdah", "drain_1")}


def test_a_drain_in_which_a_job_ran_twice_does_not_count(postgres: Postgres) -> None:
    """One job is enqueued a second time, and nobody but the count can tell."""
    forgets = replace(HOWDAH, finished=None)
    with prepared(forgets, install(HOWDAH), postgres, None) as ground:
        ground.timed("enqueue_bulk", 1)  # number 0, which the drain will have too
        with pytest.raises(Wrong, match="ran 11 times for 10 jobs"):
            measure.drain(Plan(10), ground)


def test_jobs_that_are_missing_do_not_count_as_enqueued(postgres: Postgres) -> None:
    forgetful = replace(HOWDAH, unfinished="select 9")
    with (
        prepared(forgetful, install(HOWDAH), postgres, None) as ground,
        pytest.raises(Wrong, match="9 of 10 jobs were enqueued"),
    ):
        measure.enqueue("enqueue_bulk", Plan(10), ground)


def test_a_peer_that_cannot_be_had_is_reported_and_the_others_are_measured(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("bench.install.GROUND", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))  # where there is no Node
    asked = ["--only", "graphile_worker,howdah", "--work", "enqueue_bulk", "--jobs", "10"]
    record = run(parse([*asked, "--repetitions", "1"]), postgres, "")
    assert [one.peer for one in record.measurements] == ["howdah"]
    assert record.problems() == ["Graphile Worker: there is no Node with npm on this machine"]


def test_a_driver_that_breaks_is_reported_and_the_others_are_measured(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = replace(HOWDAH, works={"enqueue_bulk": Plan(10, options={"run": "on its head"})})
    monkeypatch.setitem(ROSTER, "howdah", broken)
    asked = ["--only", "howdah", "--work", "enqueue_bulk", "--repetitions", "2"]
    record = run(parse(asked), postgres, "")
    assert len(record.problems()) == 2
    assert "KeyError: 'on its head'" in record.problems()[0]
