"""Under stress peers go through the same phases, and the report says what became of their jobs."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import psycopg
import pytest

from bench.adverse.phases import Lengths, Phases
from bench.driver_process import DriverFailed
from bench.install import install
from bench.measure.prepared_peer import PreparedPeer, prepare
from bench.peer import Plan, Stressed
from bench.peers.registry import PEERS
from bench.pickup_log import SENT, Pickup, TimesLog, read_pickups, read_times
from bench.record import FILE, newest
from bench.server import Postgres, restartable_postgres
from bench.stress.__main__ import STRESSED, exit_code, main, parse, run, save
from bench.stress.measure import measure
from bench.stress.record import ChaosResult, OverTime, PhaseResult, StressRecord, StressRun, read
from bench.stress.report import report
from bench.stress.stresses import FULL, QUICK, STRESSES, Scale
from bench.stress.summary import (
    Jobs,
    history_mb,
    job_tables,
    phase_results,
    table_results,
    too_slow,
)
from bench.stress.worker_slot import WorkerSlot, supervised, worker_slot
from bench.table_samples import Sample, TableSample
from tests.bench.sample_record import sample as sample_of_compare
from tests.support.databases import Databases
from tests.support.waiting import wait_until

HOWDAH = PEERS["howdah"]
SHORT = Scale(Lengths(clean=1.0, stress=2.0, recovery=1.0), kill_every=1.0, done_within=60.0)
REFUSE = "alter table howdah.jobs_live add check (job_type = 'none') not valid"
SOON = replace(HOWDAH, stressed=Stressed("after a second", {"silent_after": 1}))


@pytest.fixture
def postgres(databases: Databases) -> Postgres:
    return Postgres(databases.server_dsn)


@pytest.fixture
def prepared(postgres: Postgres) -> Generator[PreparedPeer]:
    with prepare(HOWDAH, install(HOWDAH), postgres, None) as prepared:
        yield prepared


@contextmanager
def producing(prepared: PreparedPeer, slot: WorkerSlot, **options: int) -> Generator[None]:
    plan = Plan(0, options={"seconds": 60, **options})
    with prepared.driver("produce", plan=plan, calls_folder=slot.folder) as producer:
        producer.wait_until_ready()
        producer.send_start()
        yield


# The runs.


@pytest.mark.slow
@pytest.mark.parametrize("name", ["snapshot", "snapshot_saturated"])
def test_howdah_goes_through_all_phases(name: str, postgres: Postgres) -> None:
    found = measure(SOON, install(HOWDAH), STRESSES[name], SHORT, postgres)
    assert found.problem is None
    assert [phase.phase for phase in found.phases] == ["clean", "stress", "recovery"]
    assert all(phase.rate > 0 and phase.p50_ms and phase.p99_ms for phase in found.phases)
    assert "jobs_live" in {table.name for table in found.tables}
    assert found.history_mb > 0
    assert found.over_time
    assert all(point >= 0 for _, point in found.over_time.dead_rows)
    assert found.chaos is None


@pytest.mark.slow
def test_in_chaos_all_jobs_are_done_in_the_end_and_none_is_lost() -> None:
    with restartable_postgres() as server:
        found = measure(SOON, install(HOWDAH), STRESSES["chaos"], SHORT, server)
    assert found.problem is None
    assert (chaos := found.chaos) is not None
    assert chaos.kills == len(SHORT.kills) == 2
    assert chaos.answered > 0
    assert (chaos.never_began, chaos.left, chaos.lost) == (0, 0, 0)
    assert chaos.done_after is not None
    assert chaos.longest_pause > 0


@pytest.mark.slow
def test_a_run_leaves_a_record_that_the_comparison_ignores(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.install.WORK_FOLDER", tmp_path / "work")
    monkeypatch.setenv("PATH", str(tmp_path))  # where there is no Node
    arguments = ["--only", "howdah,graphile_worker", "--stress", "snapshot", "--quick"]
    options = parse(arguments)._replace(scale=SHORT)
    record = run(options, postgres, "the command")
    save(record, tmp_path / "record")
    assert read(tmp_path / "record") == record
    assert {path.name for path in (tmp_path / "record").iterdir()} == {
        FILE,
        "summary.md",
        "plot.svg",
    }
    assert record.trial
    assert [(found.peer, found.stress, found.problem) for found in record.runs] == [
        ("howdah", "snapshot", None)
    ]
    assert record.problems() == [
        "Graphile Worker: there is no Node with npm on this machine: install Node 22"
    ]
    assert exit_code(record) == 0
    assert newest(tmp_path) is None


def test_a_run_that_fails_is_kept_with_its_problem(postgres: Postgres) -> None:
    broken = replace(HOWDAH, options={"concurrency": 0})
    found = measure(broken, install(HOWDAH), STRESSES["snapshot"], SHORT, postgres)
    assert found.problem is not None
    assert "concurrency" in found.problem


# Workers and producers.


@pytest.mark.parametrize("size", [1, 4])
def test_jobs_come_at_the_rate_and_their_answers_are_kept(
    size: int, prepared: PreparedPeer
) -> None:
    with (
        worker_slot(prepared, Plan(0)) as slot,
        producing(prepared, slot, rate=200, per_call=size),
    ):
        wait_until(lambda: len(read_pickups(slot.folder)) > 40, "forty jobs began")
        began = {pickup.sent_ns for pickup in read_pickups(slot.folder)}
        wait_until(lambda: began <= set(_answered(slot.folder)), "their calls were answered")
        answers = Counter(dict(read_times(slot.folder, SENT)).values())
    assert set(answers.values()) == {size}, "the jobs of a call are answered together"


def test_without_a_rate_the_line_has_its_length(prepared: PreparedPeer) -> None:
    with worker_slot(prepared, Plan(0)) as slot:
        slot.close()
        with producing(prepared, slot, ahead=70):
            wait_until(lambda: prepared.unfinished() == 70, "seventy jobs wait")
            assert read_pickups(slot.folder) == []
            slot.start()
            wait_until(lambda: len(read_pickups(slot.folder)) > 200, "more come as they run")


def test_calls_that_fail_are_kept_as_failed(prepared: PreparedPeer) -> None:
    with worker_slot(prepared, Plan(0)) as slot, producing(prepared, slot, rate=100):
        wait_until(lambda: bool(_answered(slot.folder)), "a call was answered")
        with psycopg.connect(prepared.store.address, autocommit=True) as connection:
            connection.execute(REFUSE)
        wait_until(lambda: any(not at for _, at in read_times(slot.folder, SENT)), "a call failed")


def test_a_worker_that_is_killed_has_a_successor(prepared: PreparedPeer) -> None:
    with worker_slot(prepared, Plan(0)) as slot, producing(prepared, slot, rate=100):
        wait_until(lambda: _workers_in(slot.folder) == 1, "the first worker began a job")
        slot.kill()
        wait_until(lambda: _workers_in(slot.folder) == 2, "the second worker began a job")
    assert (slot.kills, slot.ended) == (1, [])


def test_a_worker_that_ends_by_itself_has_a_successor_if_it_is_supervised(
    prepared: PreparedPeer,
) -> None:
    with worker_slot(prepared, Plan(0)) as slot, producing(prepared, slot, rate=100):
        wait_until(lambda: _workers_in(slot.folder) == 1, "the first worker began a job")
        (path,) = slot.folder.glob("*.pickup")
        os.kill(int(path.stem), signal.SIGKILL)
        wait_until(lambda: not _alive(slot), "it has ended")
        with supervised(slot):
            wait_until(lambda: _workers_in(slot.folder) == 2, "the second worker began a job")
    assert slot.kills == 0
    assert len(slot.ended) == 1
    assert "exit code -9" in slot.ended[0]


def _answered(folder: Path) -> list[int]:
    return [sent_ns for sent_ns, answered_ns in read_times(folder, SENT) if answered_ns]


def _workers_in(folder: Path) -> int:
    return len(list(folder.glob("*.pickup")))


def _alive(slot: WorkerSlot) -> bool:
    try:
        slot.check_alive()
    except DriverFailed:
        return False
    return True


# What a run shows.


def table(name: str, changes: int, dead: int = 0, megabytes: int = 1) -> TableSample:
    sizes = {name: megabytes * 1_000_000, f"{name}_pkey": 500_000}
    return TableSample(name, dead, changes, sizes)


def at(seconds: float, *tables: TableSample, **waits: float) -> tuple[float, Sample]:
    return seconds, Sample(0, {table.name: table for table in tables}, waits=waits, statements={})


def phases(samples: list[tuple[float, Sample]], per_second: int = 10) -> Phases:
    pickups = [(nth / per_second, 2.0) for nth in range(-15 * per_second, 45 * per_second)]
    return Phases(FULL.lengths, pickups, samples)


def test_job_tables_are_those_whose_rows_are_changed() -> None:
    samples = [
        at(-5, table("jobs", 0), table("history", 0, megabytes=7)),
        at(5, table("jobs", 9), table("history", 0, megabytes=8)),
    ]
    assert job_tables(phases(samples)) == {"jobs"}
    assert history_mb(phases(samples)) == 8.5
    (jobs,) = table_results(phases(samples))
    assert jobs.name == "jobs"


def test_the_sizes_of_a_table_before_meanwhile_and_at_the_end() -> None:
    samples = [
        at(-5, table("jobs", 1, 3, 2)),
        at(9, table("jobs", 9, 70, 9)),
        at(40, table("jobs", 9)),
    ]
    (jobs,) = table_results(phases(samples))
    assert (jobs.mb_clean, jobs.mb_most, jobs.mb_last, jobs.dead_rows) == (2.5, 9.5, 1.5, 70)


def test_each_phase_has_its_own_samples() -> None:
    samples = [
        at(-5, table("jobs", 1, dead=1), lock=1.0),
        at(5, table("jobs", 1, dead=999)),  # early in the stress: only with chaos
        at(25, table("jobs", 1, dead=50), lock=3.0, io=4.0),
        at(28, table("jobs", 1, dead=40), lock=1.0),
        at(42, table("jobs", 1, dead=2)),
    ]
    found = phase_results(phases(samples), STRESSES["snapshot"])
    assert [phase.dead_rows for phase in found] == [1, 50, 2]
    assert [phase.rate for phase in found] == [10, 10, 10]
    assert found[1].waits == {"lock": 2.0, "io": 2.0}
    in_chaos = phase_results(phases(samples), STRESSES["chaos"])
    assert [phase.dead_rows for phase in in_chaos] == [1, 999, 2]


def test_a_phase_without_jobs_and_samples_has_neither_pickups_nor_sizes() -> None:
    for found in phase_results(Phases(FULL.lengths, [], []), STRESSES["snapshot"]):
        assert found.rate == 0
        assert (found.p50_ms, found.p99_ms, found.enqueue_p50_ms) == (None, None, None)
        assert (found.dead_rows, found.table_mb, found.index_mb) == (None, None, None)


def test_answers_count_in_the_phase_in_which_the_job_was_sent() -> None:
    second = 1_000_000_000
    sent = ((5 * second, 5 * second + 2_000_000), (8 * second, 0), (35 * second, 41 * second))
    calls = Jobs(sent, []).answers(10 * second)
    assert calls == [(-5.0, 2.0), (25.0, 6000.0)]
    found = phase_results(phases([]), STRESSES["snapshot"], calls)
    assert [phase.enqueue_p50_ms for phase in found] == [2.0, 6000.0, None]


def test_a_peer_that_is_slower_than_its_jobs_come_is_named() -> None:
    slow = phase_results(phases([], per_second=700), STRESSES["snapshot"])
    assert "700 of 800 jobs/s" in too_slow(slow, STRESSES["snapshot"])[0]
    assert too_slow(slow, STRESSES["snapshot_saturated"]) == []
    fast = phase_results(phases([], per_second=790), STRESSES["snapshot"])
    assert too_slow(fast, STRESSES["snapshot"]) == []


def test_jobs_that_ran_twice_and_jobs_that_never_began_are_counted(tmp_path: Path) -> None:
    log = TimesLog(tmp_path, SENT)
    for sent, answered in ((1, 10), (2, 10), (3, 10), (4, 0), (5, 0)):
        log.add(sent, answered)
    began = [Pickup(20, 1), Pickup(30, 1), Pickup(40, 1), Pickup(50, 3), Pickup(60, 4)]
    jobs = Jobs(read_times(tmp_path, SENT), began)
    assert (jobs.answered, jobs.failed) == (3, 2)
    assert jobs.ran_twice == 1
    assert jobs.never_began == 1, "the second: its call was answered, that of the fifth failed"


def test_all_are_done_when_the_last_job_of_the_stress_has_begun_for_the_last_time() -> None:
    second = 1_000_000_000
    began = [
        Pickup(3 * second, second),
        Pickup(17 * second, second),
        Pickup(99 * second, 11 * second),
    ]
    assert Jobs([], began).done_after(10 * second) == 7.0
    assert Jobs([], began[:1]).done_after(10 * second) == 0.0


# The report.


def phase(name: str, rate: float, p50: float | None) -> PhaseResult:
    return PhaseResult(
        phase=name,  # pyright: ignore[reportArgumentType]
        rate=rate,
        p50_ms=p50,
        p99_ms=p50,
        enqueue_p50_ms=None,
        dead_rows=12_345,
        table_mb=3.0,
        index_mb=4.0,
        waits={"Lock: tuple": 1.5},
    )


LOST = ChaosResult(
    kills=6,
    ended_by_itself=1,
    answered=24_000,
    failed=400,
    ran_twice=77,
    never_began=9,
    left=4,
    lost=5,
    longest_pause=2.25,
    done_after=None,
)


def record_of(*runs: StressRun) -> StressRecord:
    like = sample_of_compare()
    return StressRecord(
        trial=False,
        command="the command",
        date=like.date,
        commit=like.commit,
        machine=like.machine,
        postgres=like.postgres,
        seconds=FULL.as_seconds(),
        per_call=10,
        peers={name: like.peers[name] for name in ("howdah", "graphile_worker")},
        recovery={"howdah": "after 15 s", "graphile_worker": "after 4 hours"},
        runs=list(runs),
    )


def run_of(peer: str, stress: str = "snapshot", chaos: ChaosResult | None = None) -> StressRun:
    found = [phase("clean", 800, 2.0), phase("stress", 600, 7.0), phase("recovery", 800, None)]
    points = [(float(second), 1.0) for second in range(3)]
    return StressRun(
        peer=peer,
        stress=stress,
        phases=found,
        over_time=OverTime(
            rate=points,
            p50_ms=points,
            p99_ms=points,
            dead_rows=points,
            table_mb=points,
            index_mb=points,
        ),
        chaos=chaos,
        notes=["a note"],
    )


def test_the_report_compares_each_phase_with_the_clean_one() -> None:
    shown = report(record_of(run_of("howdah"), run_of("graphile_worker")))
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in shown.splitlines()
        if "12,345" in line
    ]
    assert [row[:7] for row in rows[:3]] == [
        ["howdah", "clean", "800", "2.00", "2.00", "1.00x", "1.00x"],
        ["", "stress", "600", "7.00", "7.00", "3.50x", "3.50x"],
        ["", "recovery", "800", "-", "-", "-", "-"],
    ]
    assert rows[3][0] == "Graphile Worker"
    assert "Lock: tuple 1.50" in shown
    assert "- Graphile Worker: a note" in shown
    assert "15 s clean, 30 s stress, 15 s recovery" in shown


def test_the_report_says_what_became_of_the_jobs() -> None:
    record = record_of(run_of("howdah", "chaos", LOST))
    (row,) = [line for line in report(record).splitlines() if "24,000" in line]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == [
        "howdah", "6", "1", "24,000", "400", "77", "9", "4", "5", "2.25", "not all",
    ]  # fmt: skip
    assert exit_code(record) == 1


def test_a_run_that_could_not_be_made_is_reported() -> None:
    record = record_of(run_of("howdah"), StressRun(peer="howdah", stress="chaos", problem="broken"))
    assert "- howdah, chaos: broken" in report(record)
    assert exit_code(record) == 1
    assert exit_code(record_of(run_of("howdah"))) == 0


def test_a_chart_has_a_line_for_each_peer(tmp_path: Path) -> None:
    save(record_of(run_of("howdah"), run_of("graphile_worker")), tmp_path)
    root = ElementTree.fromstring((tmp_path / "plot.svg").read_text())
    lines = [shape for shape in root.iter() if shape.tag.endswith("polyline")]
    assert len(lines) == 5 * (5 + 2 + 2), "grid, legend and curves of each panel"


# The command line.


def test_a_full_run_is_kept_and_a_part_is_a_trial() -> None:
    assert (parse([]).trial, parse([]).scale) == (False, FULL)
    assert (parse(["--quick"]).trial, parse(["--quick"]).scale) == (True, QUICK)
    assert parse(["--only", "howdah"]).trial
    assert not parse(["--only", "howdah", "--record", "mine"]).trial
    assert parse(["--server", "/bin"]).name == "stress-other-postgres"
    assert [parse([option]).stresses[0].per_call for option in ("--quick", "--singly")] == [10, 1]
    with pytest.raises(SystemExit):
        main(["--only", "saq"])


def test_a_full_run_is_not_too_long() -> None:
    a_run = 10 + FULL.lengths.total
    seconds = len(STRESSED) * (len(STRESSES) * a_run + FULL.done_within)
    assert seconds <= 25 * 60


def test_the_server_restarts_between_two_kills() -> None:
    for scale in (FULL, QUICK):
        assert all(0 < at < scale.lengths.stress for at in (*scale.kills, scale.restart))
        assert min(abs(at - scale.restart) for at in scale.kills) == scale.kill_every / 2
