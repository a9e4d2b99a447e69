"""Delays: how late an idle worker claims a delayed job.

    python -m bench.upkeep_delays                  in full: about two minutes
    python -m bench.upkeep_delays --scale 0.05     with a twentieth of the jobs: does it work?

Jobs are sent one at a time, each with a random delay of up to a second, so the worker is idle when
a job becomes due. The lateness is the time from `run_at` to `claimed_at`, by the server's clock.
"""

from __future__ import annotations

import random
import sys
import time

import psycopg
from psycopg.types.json import Jsonb

from bench.aggregate import percentile
from bench.case_record import CaseResult, Curve, Finding
from bench.cases import Case, CaseContext, exit_code, run_command_line
from bench.driver import payload
from bench.driver_process import DriverFailed
from bench.sample_jobs import NOOP

JOBS = 200
LONGEST = 1.0  # seconds
TIMEOUT = 30.0
LATEST_MS = 50.0

_ENQUEUE = "select howdah.enqueue(%s, %s, p_delay => make_interval(secs => %s))"
_LATE = "select extract(epoch from claimed_at - run_at) * 1000 from howdah.jobs where id = %s"


def measure_idle_worker(context: CaseContext) -> CaseResult:
    delays = random.Random(1)  # the same in every run
    late: list[float] = []
    with (
        context.testbed() as testbed,
        testbed.worker(names=[NOOP]),
        testbed.connect() as connection,
    ):
        for _ in range(max(5, context.jobs(JOBS))):
            late.append(_send_delayed(connection, delays.uniform(0.01, LONGEST)))
    return CaseResult(
        [
            Finding(
                case=DELAYS.name,
                title=f"delayed job, idle worker: late, p{percent}",
                measured=round(percentile(late, percent), 2),
                sense="at most",
                bound=LATEST_MS,
                unit=" ms",
            )
            for percent in (50, 99)
        ],
        [
            Curve(
                case=DELAYS.name,
                title="how late each delayed job was claimed",
                x_label="jobs sent",
                y_label="ms",
                series={"late": [(nth, round(ms, 2)) for nth, ms in enumerate(late, 1)]},
            )
        ],
    )


def _send_delayed(connection: psycopg.Connection, delay: float) -> float:
    """Send a job, wait for it, and return how many milliseconds late it was claimed."""
    row = connection.execute(_ENQUEUE, (NOOP, Jsonb(payload(0)), delay)).fetchone()
    assert row is not None
    deadline = time.monotonic() + TIMEOUT
    while (late := connection.execute(_LATE, row).fetchone()) is None or late[0] is None:
        if time.monotonic() > deadline:
            raise DriverFailed(f"a job with a delay of {delay:.2f} s was not claimed")
        time.sleep(0.01)
    return float(late[0])


DELAYS = Case("delays", "jobs with a delay while a worker is idle", measure_idle_worker)
CASES = {DELAYS.name: DELAYS}

if __name__ == "__main__":
    sys.exit(exit_code(run_command_line("delays", CASES, __doc__)))
