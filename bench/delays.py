"""Delays: how late a job with a time of its own is claimed while a worker is idle.

    python -m bench.delays                  in full: some two minutes
    python -m bench.delays --scale 0.05     with a twentieth of the jobs: does it work?

One job at a time, each with a random delay of up to a second, so that the worker is asleep whenever
one becomes due. Late is the time from `run_at` to `claimed_at`, both by the server's clock.
"""

from __future__ import annotations

import random
import sys
import time

import psycopg
from psycopg.types.json import Jsonb

from bench.cases import Case, Stage, command, exit_code
from bench.driver import payload
from bench.figures import percentile
from bench.findings import Curve, Finding, Seen
from bench.lots import NOOP
from bench.process import Broken

JOBS = 200
LONGEST = 1.0  # seconds
PATIENCE = 30.0
LATEST_MS = 50.0

_ENQUEUE = "select howdah.enqueue(%s, %s, p_delay => make_interval(secs => %s))"
_LATE = "select extract(epoch from claimed_at - run_at) * 1000 from howdah.jobs where id = %s"


def of_an_idle_worker(stage: Stage) -> Seen:
    delays = random.Random(1)  # the same in every run
    late: list[float] = []
    with stage.yard() as yard, yard.worker(names=[NOOP]), yard.connect() as connection:
        for _ in range(max(5, stage.jobs(JOBS))):
            late.append(_one(connection, delays.uniform(0.01, LONGEST)))
    return Seen(
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
                across="jobs sent",
                upward="ms",
                lines={"late": [(nth, round(ms, 2)) for nth, ms in enumerate(late, 1)]},
            )
        ],
    )


def _one(connection: psycopg.Connection, delay: float) -> float:
    """Send a job and wait for it; returns how many milliseconds late it was claimed."""
    row = connection.execute(_ENQUEUE, (NOOP, Jsonb(payload(0)), delay)).fetchone()
    assert row is not None
    until = time.monotonic() + PATIENCE
    while (found := connection.execute(_LATE, row).fetchone()) is None or found[0] is None:
        if time.monotonic() > until:
            raise Broken(f"a job with a delay of {delay:.2f} s was not claimed")
        time.sleep(0.01)
    return float(found[0])


DELAYS = Case("delays", "jobs with a delay while a worker is idle", of_an_idle_worker)
CASES = {DELAYS.name: DELAYS}

if __name__ == "__main__":
    sys.exit(exit_code(command("delays", CASES, __doc__)))
