"""CPU time and WAL are those of the server and of the peer, and not those of the benchmark."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.aggregate import CPU, SERVER_CPU, WAL, WORKER_CPU, Aggregate, aggregate, per_job
from bench.compare import parse, run
from bench.cpu_time import postmaster_of, seconds_of, seconds_of_tree
from bench.driver_process import DriverFailed
from bench.install import install
from bench.measure.prepared_peer import prepare
from bench.measure.store import PostgresStore, empty_store
from bench.measure.usage import Usage
from bench.measure.workload import measure
from bench.peer import Plan
from bench.peers.registry import PEERS
from bench.record import Measurement
from bench.server import Postgres
from tests.support.databases import Databases

HOWDAH = PEERS["howdah"]
BUSY = "do $$ begin for n in 1..3000000 loop perform n; end loop; end $$"
BURN = "sum(range(5_000_000))"
WITH_CHILD = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "{BURN}; print(flush=True); input()"])
input()
"""


@pytest.fixture
def postgres(databases: Databases) -> Postgres:
    return Postgres(databases.server_dsn)


@pytest.mark.parametrize("workload", ["enqueue_bulk", "floor", "drain_1", "pickup"])
def test_every_measurement_tells_what_its_interval_cost(workload: str, postgres: Postgres) -> None:
    jobs = 20 if workload == "pickup" else 5000
    with prepare(HOWDAH, install(HOWDAH), postgres, None) as prepared:
        usage = measure(workload, Plan(jobs), prepared).usage
    assert usage is not None
    assert usage.server_cpu > 0
    assert usage.worker_cpu > 0
    assert usage.wal_bytes is not None
    assert usage.wal_bytes > 50 * jobs


def test_the_questions_of_the_benchmark_do_not_count(postgres: Postgres) -> None:
    with empty_store(HOWDAH, postgres, None) as store:
        assert isinstance(store, PostgresStore)
        store.connection.execute(BUSY)
        without = store.cpu_seconds()
        everything = seconds_of_tree(postmaster_of(store.connection))
        asked = seconds_of(store.connection.info.backend_pid)
    assert asked > 0.05
    assert everything - without > asked / 2


def test_a_producer_stays_until_its_usage_is_read(postgres: Postgres) -> None:
    """It says `done` when it ends, and that is not before the second signal."""
    with (
        prepare(HOWDAH, install(HOWDAH), postgres, None) as prepared,
        prepared.driver("enqueue_bulk", 10, Plan(10), holds=True) as driver,
    ):
        driver.wait_until_ready()
        driver.send_start()
        driver.read("seconds")
        with pytest.raises(DriverFailed, match="did not answer in time"):
            driver.read("done", timeout=0.3)
        driver.send_start()
        driver.read("done")


def test_the_time_of_a_grandchild_counts() -> None:
    command = [sys.executable, "-c", WITH_CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()  # the grandchild has worked
        assert seconds_of_tree(process.pid) > seconds_of(process.pid) * 1.5
        process.stdin.close()


def test_a_usage_is_the_difference_of_two_readings() -> None:
    assert Usage(5.0, 3.0, 900).since(Usage(4.0, 1.0, 500)) == Usage(1.0, 2.0, 400)
    assert Usage(5.0, 3.0, None).since(Usage(4.0, 1.0, None)) == Usage(1.0, 2.0, None)


def test_the_record_has_the_cost_of_a_job(postgres: Postgres) -> None:
    arguments = ["--only", "howdah", "--workload", "enqueue_bulk", "--quick"]
    (measurement,) = run(parse(arguments), postgres, "").measurements
    assert measurement.server_cpu_us is not None
    assert 1 < measurement.server_cpu_us < 1_000_000
    assert measurement.worker_cpu_us is not None
    assert measurement.wal_bytes is not None
    assert 100 < measurement.wal_bytes < 100_000


def test_costs_have_names_of_their_own_and_cpu_is_their_sum() -> None:
    measurement = Measurement(
        peer="howdah",
        workload="drain_1",
        turn=1,
        jobs=1000,
        seconds=1,
        server_cpu_us=20.0,
        worker_cpu_us=10.0,
        wal_bytes=900.0,
    )
    aggregates = aggregate([measurement])
    costs = {SERVER_CPU: 20.0, WORKER_CPU: 10.0, CPU: 30.0, WAL: 900.0}
    for cost, value in costs.items():
        assert aggregates["howdah", per_job("drain_1", cost)] == Aggregate(value, value, value)
