"""The cost of open pages is measured apart from the cost of the worker."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest

from bench.cases import CaseContext
from bench.cpu_time import CpuTime, children_of, read_cpu_time, seconds_of
from bench.observe_dashboard import CASES, CLOSED, OPEN, Interval, as_role, findings
from bench.server import Postgres
from tests.support.databases import Databases

BUSY = "do $$ begin for n in 1..3000000 loop perform n; end loop; end $$"


@pytest.mark.slow
def test_open_pages_are_updated_and_their_cost_is_measured(databases: Databases) -> None:
    context = CaseContext(Postgres(databases.server_dsn), scale=0.1, max_minutes=0.02, rounds=1)
    result = CASES["dashboard"].run(context)
    share, rate = result.findings
    assert (share.sense, share.bound, share.unit) == ("below", 2.0, " %")
    assert 0 <= share.measured < 50
    assert 0.2 < rate.measured < 5
    assert set(result.curves[0].series) == {f"{OPEN}, 1", f"{CLOSED}, 1"}


def test_the_share_is_of_all_intervals_with_open_pages() -> None:
    def interval(rate: float, all: float, role: float) -> Interval:
        return Interval([(1.0, rate), (2.0, rate)], CpuTime(all, role), 3)

    intervals = {
        CLOSED: [interval(1000, 4, 0), interval(5000, 4, 0), interval(1100, 4, 0)],
        OPEN: [interval(990, 5, 0.05), interval(1045, 15, 0.15), interval(100, 0, 0)],
    }
    share, rate = findings(intervals)
    assert share.measured == 1.0
    assert share.within
    assert "9 updates" in share.title
    assert rate.measured == 0.9  # of the medians
    assert not rate.within


def test_the_time_of_a_role_is_separated_from_that_of_others(
    databases: Databases, dsn: str
) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("create role bench_busy superuser login")
        try:
            with psycopg.connect(as_role(dsn, "bench_busy"), autocommit=True) as busy:
                before = read_cpu_time(connection, "bench_busy")
                busy.execute(BUSY)
                after_role = read_cpu_time(connection, "bench_busy").since(before)
                connection.execute(BUSY)
                after_both = read_cpu_time(connection, "bench_busy").since(before)
        finally:
            connection.execute("drop role bench_busy")
    assert after_role.role > 0.05
    assert after_both.role < after_role.role * 1.5
    assert after_both.all > after_both.role * 1.3
    assert 0 < after_both.share < 1


def test_children_are_found_and_those_that_ended_count() -> None:
    work = "input(); sum(range(10_000_000))"  # enough for a clock that counts hundredths
    with subprocess.Popen([sys.executable, "-c", work], stdin=subprocess.PIPE) as child:
        assert child.pid in children_of(os.getpid())
        child.communicate(b"\n")
    assert child.pid not in children_of(os.getpid())
    assert seconds_of(child.pid) == 0.0
    assert seconds_of(os.getpid(), with_ended=True) > seconds_of(os.getpid())


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("postgresql://postgres@/d?host=/s&port=1", "postgresql://r@/d?host=/s&port=1"),
        ("postgresql://postgres:x@h:5/d", "postgresql://r:x@h:5/d"),
        ("postgresql://h/d", "postgresql://r@h/d"),
    ],
)
def test_a_dsn_is_changed_to_another_role(dsn: str, expected: str) -> None:
    assert as_role(dsn, "r") == expected
