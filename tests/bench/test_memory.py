"""The size of a worker and of a producer can be measured, and a leak is seen."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.cases import Stage
from bench.memory import CASES
from bench.resident import peak_kib, resident_kib
from bench.server import Postgres
from tests.support.databases import Databases


@pytest.fixture
def stage(databases: Databases) -> Stage:
    return Stage(Postgres(databases.server_dsn), scale=0.01, rounds=1)


def test_a_worker_is_measured_after_few_jobs_and_after_many(stage: Stage) -> None:
    seen = CASES["worker"].run(stage)
    (finding,) = seen.findings
    assert (finding.sense, finding.bound) == ("at most", 1.1)
    assert 0.5 < finding.measured < 3
    sizes = seen.curves[0].lines["worker"]
    assert (sizes[0][0], sizes[-1][0]) == (100, 10_000)
    assert all(20 < size < 500 for _, size in sizes)


def test_a_producer_says_the_largest_size_it_had(stage: Stage) -> None:
    (finding,) = CASES["enqueue_many"].run(stage).findings
    assert (finding.sense, finding.bound, finding.unit) == ("below", 200, " MB")
    assert 20 < finding.measured < 200


def test_the_peak_remembers_what_was_given_back() -> None:
    program = (
        "from bench.resident import peak_kib, resident_kib\n"
        "held = bytearray(b'x') * 100_000_000\n"
        "del held\n"
        "print(peak_kib() - resident_kib())"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(said.stdout) > 90_000


def test_the_size_of_another_process_can_be_asked() -> None:
    assert 0 < resident_kib() <= peak_kib()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert resident_kib(other.pid) < resident_kib()
        other.communicate(b"\n")
