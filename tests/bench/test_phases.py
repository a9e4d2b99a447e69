"""A run in phases compares the end of the stress, and the time after it, with the clean phase."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bench.adverse.open_transaction import sizes
from bench.adverse.phases import Lengths, Phases
from bench.adverse.regime import Regime
from bench.call_counter import CallCounter
from bench.cases import CaseContext
from bench.measure.prepared_peer import InvalidMeasurement
from bench.pickup_log import PICKUPS, Pickup, PickupReader, TimesLog, read_pickups
from bench.server import Postgres
from bench.table_samples import Sample, TableSample, sampling
from bench.testbed import Testbed
from tests.support.background import BackgroundCall
from tests.support.databases import Databases
from tests.support.processes import ROOT
from tests.support.waiting import wait_until

LENGTHS = Lengths(clean=10.0, stress=30.0, recovery=20.0)


@pytest.fixture
def testbed(databases: Databases) -> Generator[Testbed]:
    with CaseContext(Postgres(databases.server_dsn)).testbed() as testbed:
        yield testbed


def steady(
    since: float, until: float, ms: float, per_second: int = 10
) -> list[tuple[float, float]]:
    count = int((until - since) * per_second)
    return [(since + (nth + 0.5) / per_second, ms) for nth in range(count)]


def sample(at: float, megabytes: int = 1, **more: float) -> tuple[float, Sample]:
    sizes = {"jobs_live": megabytes * 1_000_000, "jobs_ready": 5_000_000}
    tables = {"jobs_live": TableSample("jobs_live", 7, 0, sizes)}
    return at, Sample(int(at), tables, waits=more, statements=more)


def phases(
    *pickups: list[tuple[float, float]], samples: list[tuple[float, Sample]] | None = None
) -> Phases:
    return Phases(LENGTHS, [job for part in pickups for job in part], samples or [])


def measured(run: Phases) -> list[float]:
    return [finding.measured for finding in run.findings("held", "title")]


def test_an_undisturbed_run_loses_nothing() -> None:
    run = phases(steady(-10, 50, 2.0))
    assert measured(run) == [1.0, 1.0, 1.0, 0.1, 1.0, 1.0, 1.0]
    assert all(finding.within for finding in run.findings("held", "title"))


def test_the_last_third_of_the_stress_counts() -> None:
    """A loss that grows is not hidden by its beginning."""
    run = phases(steady(-10, 20, 2.0), steady(20, 30, 6.0, per_second=5), steady(30, 50, 2.0))
    assert measured(run)[:3] == [0.5, 3.0, 3.0]
    assert not any(finding.within for finding in run.findings("held", "title")[:3])
    assert measured(run)[4:] == [1.0, 1.0, 1.0]


def test_a_loss_in_the_first_seconds_of_the_stress_counts_when_it_stays() -> None:
    """It is compared with the time before the stress, and not with its beginning."""
    run = phases(steady(-10, 0, 2.0), steady(0, 30, 8.0), steady(30, 50, 2.0))
    assert measured(run)[:3] == [1.0, 4.0, 4.0]


def test_the_first_five_seconds_of_the_recovery_do_not_count() -> None:
    run = phases(steady(-10, 30, 2.0), steady(30, 35, 90.0), steady(35, 50, 2.0))
    assert measured(run)[4:] == [1.0, 1.0, 1.0]
    run = phases(steady(-10, 30, 2.0), steady(30, 36, 90.0), steady(36, 50, 2.0))
    assert measured(run)[6] == 45.0


def test_a_pause_under_stress_is_noticed() -> None:
    run = phases(steady(-10, 10, 2.0), steady(12, 50, 2.0))
    pause = run.findings("held", "title")[3]
    assert pause.measured == 2.1
    assert not pause.within


def test_a_run_without_jobs_in_a_part_does_not_count() -> None:
    with pytest.raises(InvalidMeasurement):
        phases(steady(-10, 15, 2.0)).findings("held", "title")


def test_the_size_counts_before_the_stress_and_at_the_very_end() -> None:
    samples = [sample(-5, 40), sample(-1, 60), sample(20, 900), sample(40, 500), sample(49, 70)]
    before, after = sizes("held", phases(samples=samples))
    assert (before.measured, before.within) == (60.0, True)
    assert (after.measured, after.within) == (70.0, False)
    assert "900 MB meanwhile (indexes 5 MB)" in after.title


def test_charts_show_every_second_and_what_the_sessions_do() -> None:
    samples = [sample(at, claim=2.0, complete=at) for at in range(-9, 50)]
    curves = phases(steady(-10, 50, 2.0), samples=samples).curves("held", "title")
    rates, pickups, dead, size, statements, waits = (curve.series for curve in curves)
    assert {y for _, y in rates["began"]} == {10.0}
    assert len(rates["began"]) == 58
    assert pickups.keys() == {"p50", "p99"}
    assert dead == {"dead": [(at, 7.0) for at in range(-9, 50)]}
    assert size["jobs_live"][0] == (-9, 1.0)
    assert list(statements) == list(waits) == ["complete", "claim"]


def test_pickups_are_read_in_the_order_in_which_handlers_began(tmp_path: Path) -> None:
    calls = CallCounter(tmp_path)
    sent = time.monotonic_ns() - 5_000_000
    calls.picked_up(sent)
    calls.picked_up(sent - 1)
    first, second = read_pickups(tmp_path)
    assert (first.sent_ns, second.sent_ns) == (sent, sent - 1)
    assert first.began_ns <= second.began_ns
    assert first.ms >= 5.0
    assert Pickup(3_000_000, 1_000_000).ms == 2.0


def test_a_pair_that_is_unused_or_not_written_completely_is_left_out(tmp_path: Path) -> None:
    pairs = (1, 2, 0, 0)
    (tmp_path / f"1{PICKUPS}").write_bytes(struct.pack("<4q", *pairs) + bytes(9))
    assert read_pickups(tmp_path) == [Pickup(2, 1)]
    assert PickupReader(tmp_path).count() == 1


def test_pickups_of_many_threads_are_all_kept_and_counted(tmp_path: Path) -> None:
    """More than are mapped at once, and more than are read at once."""
    log, each, threads = TimesLog(tmp_path, PICKUPS), 12_000, 3

    def add(first: int) -> None:
        for number in range(first, first + each):
            log.add(number, number + 1)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(add, (1 + nth * each for nth in range(threads))))
    assert [sent for _, sent in read_pickups(tmp_path)] == list(range(1, threads * each + 1))
    reader = PickupReader(tmp_path)
    assert reader.count() == threads * each
    log.add(1, 2)
    assert reader.count() == threads * each + 1


KILLED = """
import os, signal, sys
from pathlib import Path
from bench.pickup_log import PICKUPS, TimesLog
log = TimesLog(Path(sys.argv[1]), PICKUPS)
for number in range(1, 101):
    log.add(number, number)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_loses_no_pickup(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert len(read_pickups(tmp_path)) == 100


def test_samples_have_the_table_its_indexes_and_what_the_sessions_wait_for(
    testbed: Testbed,
) -> None:
    testbed.enqueue(500)
    with (
        sampling(testbed.dsn) as samples,
        testbed.connect() as holder,
        testbed.connect() as waiter,
    ):
        holder.execute("select pg_advisory_lock(1)")
        waiting = BackgroundCall(lambda: waiter.execute("select pg_advisory_lock(1)"))
        wait_until(lambda: len(samples) >= 2, "two samples")
        holder.execute("select pg_advisory_unlock(1)")
        waiting.result()
    last = samples[-1].tables["jobs_live"]
    assert {"jobs_live", "jobs_live_pkey", "jobs_ready"} <= last.sizes.keys()
    assert last.table_bytes == last.sizes["jobs_live"] > 0
    assert last.index_bytes > last.sizes["jobs_live_pkey"] > 0
    assert any(taken.waits.get("Lock: advisory") == 1.0 for taken in samples)
    assert any(taken.statements.get("select") == 1.0 for taken in samples)


@pytest.mark.slow
@pytest.mark.parametrize(
    "regime", [Regime(rate=200), Regime(rate=2000), Regime(ahead=50), Regime(200, 0, 3, 2)]
)
def test_jobs_come_as_the_regime_says(regime: Regime, testbed: Testbed) -> None:
    with regime.at_work(testbed, seconds=1.0) as worker:
        wait_until(lambda: len(read_pickups(worker.folder)) > 100, "a hundred jobs began")
    with testbed.connect() as connection:
        rows = connection.execute(
            "select distinct job_type, priority from howdah.jobs where job_type <> 'warm_up'"
        ).fetchall()
    assert len({name for name, _ in rows}) == regime.types
    assert len({priority for _, priority in rows}) == regime.priorities
