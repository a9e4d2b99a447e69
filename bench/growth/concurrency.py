"""Concurrency: how many jobs one worker process runs at a time.

It hardly matters for handlers that do nothing. For handlers that wait ten milliseconds, as for an
answer over the network, it decides the rate until the process uses a whole core.
"""

from __future__ import annotations

from bench.case_record import CaseResult
from bench.cases import Case, CaseContext
from bench.growth.sweep import Rates, sweep
from bench.sample_jobs import NOOP, WAITING
from bench.testbed import Testbed

STEPS = (1, 3, 10, 30, 100, 300, 1000)
MOST = 100_000
WAITS_PER_SLOT = 200  # two seconds


def measure_concurrency(context: CaseContext) -> CaseResult:
    with context.testbed() as testbed:

        def measure(slots: int) -> Rates:
            noops, waiting = context.jobs(MOST), context.jobs(min(MOST, WAITS_PER_SLOT * slots))
            return {
                "handlers that do nothing": _drain(testbed, noops, slots, NOOP),
                "handlers that wait 10 ms": _drain(testbed, waiting, slots, WAITING),
            }

        return sweep(
            context,
            STEPS,
            measure,
            case=CONCURRENCY.name,
            title=CONCURRENCY.title,
            x_label="jobs at work at once",
        )


def _drain(testbed: Testbed, jobs: int, slots: int, name: str) -> float:
    testbed.enqueue(jobs, [name])
    return testbed.drain(jobs, concurrency=slots, names=[name]).rate


CONCURRENCY = Case("concurrency", "Jobs per second by concurrency", measure_concurrency)
