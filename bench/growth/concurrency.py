"""Concurrency: how many jobs one worker process has at work at once.

With handlers that do nothing it hardly matters. With handlers that wait ten milliseconds, as for
an answer over the network, it is what decides, until the process has no time left.
"""

from __future__ import annotations

from bench.cases import Case, Stage
from bench.findings import Seen
from bench.growth.over import Rates, over
from bench.lots import NOOP, WAITING
from bench.yard import Yard

STEPS = (1, 3, 10, 30, 100, 300, 1000)
MOST = 100_000
WAITS_PER_SLOT = 200  # two seconds of waiting


def over_concurrency(stage: Stage) -> Seen:
    with stage.yard() as yard:

        def measure(slots: int) -> Rates:
            idle, waiting = stage.jobs(MOST), stage.jobs(min(MOST, WAITS_PER_SLOT * slots))
            return {
                "handlers that do nothing": _drain(yard, idle, slots, NOOP),
                "handlers that wait 10 ms": _drain(yard, waiting, slots, WAITING),
            }

        return over(
            stage,
            STEPS,
            measure,
            case=CONCURRENCY.name,
            title=CONCURRENCY.title,
            across="jobs at work at once",
        )


def _drain(yard: Yard, jobs: int, slots: int, name: str) -> float:
    yard.enqueue(jobs, [name])
    return yard.drain(jobs, concurrency=slots, names=[name]).rate


CONCURRENCY = Case("concurrency", "Jobs per second by concurrency", over_concurrency)
