"""Dashboard: what open pages cost the database while a worker drains at full rate.

    python -m bench.observe_dashboard                        in full: a little more than a minute
    python -m bench.observe_dashboard --scale 0.1 --minutes 0.01 --rounds 1   small: does it work?
    python -m bench.observe_dashboard --server FOLDER        with the PostgreSQL in FOLDER

There is one line of jobs, one worker and one `howdah web`. Intervals with ten open pages and
intervals without take turns. The dashboard connects with its own role, so the CPU time of its
backends can be separated from that of the server's other processes.
"""

from __future__ import annotations

import os
import re
import secrets
import statistics
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from bench.case_record import CaseResult, Curve, Finding, Point
from bench.cases import Case, CaseContext, exit_code, run_command_line
from bench.cpu_time import CpuTime, read_cpu_time
from bench.install import ROOT
from bench.measure.prepared_peer import InvalidMeasurement
from bench.sample_jobs import NOOP
from bench.testbed import Testbed, Worker, rates_each_second
from bench.viewers import viewers

JOBS = 4_000_000
INTERVAL = 5 / 60  # minutes
PAGES = (
    *("/", "/", "/"),
    "/types",
    f"/types/{NOOP}",
    *("/jobs", "/jobs?status=pending"),
    "/failures",
    "/workers",
    "/health",
)
OPEN, CLOSED = "pages open", "no page open"
CPU_SHARE_PERCENT, RATE_LEFT = 2.0, 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """Some seconds of a drain, with open pages or without."""

    rates: list[Point]
    server: CpuTime
    updates: int

    @property
    def rate(self) -> float:
        return statistics.mean(rate for _, rate in self.rates)


Intervals = dict[str, list[Interval]]  # by OPEN and CLOSED


def measure_open_pages(context: CaseContext) -> CaseResult:
    role = f"bench_dashboard_{secrets.token_hex(4)}"
    intervals: Intervals = {CLOSED: [], OPEN: []}
    with (
        context.testbed() as testbed,
        _role(testbed, role),
        start_dashboard(as_role(testbed.dsn, role)) as served,
    ):
        jobs = context.jobs(JOBS)
        testbed.enqueue(jobs)
        with viewers(served.url, served.token, PAGES) as opened:  # the first updates cost more
            opened.wait_for_updates(len(PAGES))
        testbed.vacuum_and_checkpoint()
        with testbed.worker() as worker:
            testbed.wait_for_calls(worker, 1)
            for number, is_open in context.turns():
                side = OPEN if is_open else CLOSED
                first = 3 * number  # another page is first in each round
                pages = (PAGES[first:] + PAGES[:first]) * is_open
                intervals[side].append(
                    _measure_interval(testbed, worker, role, served, context, pages)
                )
            if worker.calls.count().calls >= jobs:
                raise InvalidMeasurement(f"the worker ran all {jobs:,} jobs before the end")
    return CaseResult(findings(intervals), [_curve(intervals)])


def _measure_interval(
    testbed: Testbed,
    worker: Worker,
    role: str,
    served: Served,
    context: CaseContext,
    pages: tuple[str, ...],
) -> Interval:
    with testbed.connect() as connection, viewers(served.url, served.token, pages) as opened:
        if pages:
            opened.wait_for_updates()
        before, updates = read_cpu_time(connection, role), sum(opened.updates)
        rates = rates_each_second(worker, context.seconds(INTERVAL))
        return Interval(
            rates, read_cpu_time(connection, role).since(before), sum(opened.updates) - updates
        )


def findings(intervals: Intervals) -> list[Finding]:
    """Return the pages' share of the server's CPU time, and the part of the rate that is left."""
    rates = {
        side: statistics.median(interval.rate for interval in repeated)
        for side, repeated in intervals.items()
    }
    opened = intervals[OPEN]
    server = CpuTime(
        sum(interval.server.all for interval in opened),
        sum(interval.server.role for interval in opened),
    )
    updates = sum(interval.updates for interval in opened)
    return [
        Finding(
            case=OPEN_PAGES.name,
            title=f"CPU time of the server for {len(PAGES)} open pages ({updates} updates, "
            f"{server.role:.2f} of {server.all:.1f} s)",
            measured=round(100 * server.share, 2),
            sense="below",
            bound=CPU_SHARE_PERCENT,
            unit=" %",
        ),
        Finding(
            case=OPEN_PAGES.name,
            title=f"rate of a worker beside them ({rates[CLOSED]:,.0f} jobs/s without)",
            measured=round(rates[OPEN] / rates[CLOSED], 3),
            sense="at least",
            bound=RATE_LEFT,
        ),
    ]


def _curve(intervals: Intervals) -> Curve:
    return Curve(
        case=OPEN_PAGES.name,
        title=f"a worker, with {len(PAGES)} open pages and without",
        x_label="seconds of an interval",
        y_label="jobs/s",
        series={
            f"{side}, {number}": interval.rates
            for side, repeated in intervals.items()
            for number, interval in enumerate(repeated, 1)
        },
    )


@dataclass(frozen=True, slots=True)
class Served:
    """A running dashboard, and its token."""

    url: str
    token: str


@contextmanager
def start_dashboard(dsn: str) -> Generator[Served]:
    """Run `howdah web` on a free port."""
    token = secrets.token_urlsafe(24)
    command = [sys.executable, "-P", "-m", "howdah", "web", "--dsn", dsn, "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
        env={**os.environ, "HOWDAH_WEB_TOKEN": token},
    ) as process:
        try:
            assert process.stdout is not None
            output: list[str] = []
            for line in process.stdout:
                output.append(line.strip())
                if link := re.search(r"http://[^/\s]+", line):
                    yield Served(link[0], token)
                    return
            raise InvalidMeasurement("; ".join(["the dashboard did not start", *output[-3:]]))
        finally:
            process.terminate()


def as_role(dsn: str, role: str) -> str:
    """Return the DSN for another role, with the same password if there is one."""
    parts = urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    password = f":{parts.password}" if parts.password else ""
    return urlunsplit(parts._replace(netloc=f"{role}{password}@{host}"))


@contextmanager
def _role(testbed: Testbed, role: str) -> Generator[None]:
    password = urlsplit(testbed.dsn).password
    secret = f" password '{password}'" if password else ""
    testbed.execute(f"create role {role} superuser login{secret}")
    try:
        yield
    finally:
        testbed.execute(f"drop role {role}")


OPEN_PAGES = Case("dashboard", "a worker at full rate beside open pages", measure_open_pages)
CASES = {OPEN_PAGES.name: OPEN_PAGES}

if __name__ == "__main__":
    sys.exit(exit_code(run_command_line("dashboard", CASES, __doc__)))
