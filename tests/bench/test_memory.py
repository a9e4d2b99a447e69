"""The memory of a worker and of a producer is measured, and a leak is noticed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bench.cases import CaseContext
from bench.memory import CASES
from bench.memory_usage import peak_kib, resident_kib
from bench.server import Postgres
from tests.support.databases import Databases


@pytest.fixture
def context(databases: Databases) -> CaseContext:
    return CaseContext(Postgres(databases.server_dsn), scale=0.01, rounds=1)


def test_a_worker_is_measured_after_few_jobs_and_after_many(context: CaseContext) -> None:
    result = CASES["worker"].run(context)
    (finding,) = result.findings
    assert (finding.sense, finding.bound) == ("at most", 1.1)
    assert 0.5 < finding.measured < 3
    sizes = result.curves[0].series["worker"]
    assert (sizes[0][0], sizes[-1][0]) == (100, 10_000)
    assert all(20 < size < 500 for _, size in sizes)


def test_a_producer_reports_its_peak_size(context: CaseContext) -> None:
    (finding,) = CASES["enqueue_many"].run(context).findings
    assert (finding.sense, finding.bound, finding.unit) == ("below", 200, " MB")
    assert 20 < finding.measured < 200


def test_the_peak_includes_memory_that_was_freed() -> None:
    program = (
        "from bench.memory_usage import peak_kib, resident_kib\n"
        "held = bytearray(b'x') * 100_000_000\n"
        "del held\n"
        "print(peak_kib() - resident_kib())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert int(done.stdout) > 90_000


def test_the_size_of_another_process_can_be_read() -> None:
    assert 0 < resident_kib() <= peak_kib()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert resident_kib(other.pid) < resident_kib()
        other.communicate(b"\n")
