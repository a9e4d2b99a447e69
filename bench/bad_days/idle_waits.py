"""Idle waits: ten thousand `handle.result()` stand open in the process that hands over jobs.

Pickups are timed as in measure.py, from before the enqueue call to the handler's first line, with
the waits and without. What the waits cost in memory is what the process grew by, per wait.
"""

from __future__ import annotations

import statistics
import time

from bench.bad_days.sides import BAD, GOOD
from bench.cases import Case, Stage
from bench.figures import percentile
from bench.findings import Curve, Finding, Seen
from bench.lots import PICKUP
from bench.process import Broken
from bench.yard import Yard

WAITS = 10_000
PICKUPS, WARM_UP = 300, 20
UNCHANGED = 1.1  # of the time without waits; pickups of one run differ by as much
KIB_PER_WAIT = 20.0
PATIENCE = 60.0


def of_idle_waits(stage: Stage) -> Seen:
    waits, pickups = stage.jobs(WAITS), max(20, stage.jobs(PICKUPS))
    times: dict[str, list[list[float]]] = {GOOD: [], BAD: []}
    kib: list[float] = []
    for _, is_bad in stage.turns():
        with stage.yard() as yard:
            took, grown = _send(yard, waits if is_bad else 0, pickups)
        times[BAD if is_bad else GOOD].append(took)
        if is_bad:
            kib.append(grown / waits)
    medians = {
        side: statistics.median(percentile(one, 50) for one in found)
        for side, found in times.items()
    }
    return Seen(
        [
            Finding(
                case=IDLE_WAITS.name,
                title=f"10,000 idle waits, pickup p50 ({medians[GOOD]:.2f} ms without)",
                measured=round(medians[BAD] / medians[GOOD], 3),
                sense="at most",
                bound=UNCHANGED,
            ),
            Finding(
                case=IDLE_WAITS.name,
                title="the same, memory per wait",
                measured=round(statistics.median(kib), 2),
                sense="at most",
                bound=KIB_PER_WAIT,
                unit=" KiB",
            ),
        ],
        [_curve(times)],
    )


def _send(yard: Yard, waits: int, pickups: int) -> tuple[list[float], float]:
    with (
        yard.worker(names=[PICKUP]) as worker,
        yard.hands("send", pickups + WARM_UP, waits=waits) as sender,
    ):
        grown = float(sender.hear("kib"))
        sender.wait_until_ready()
        sender.go()
        sender.hear("sent")
        until = time.monotonic() + PATIENCE
        while len(times := worker.tally.pickups_ms()) < pickups + WARM_UP:
            if time.monotonic() > until:
                raise Broken(f"{len(times)} of {pickups + WARM_UP} jobs were picked up")
            time.sleep(0.01)
    return times[WARM_UP:], grown


def _curve(times: dict[str, list[list[float]]]) -> Curve:
    return Curve(
        case=IDLE_WAITS.name,
        title="10,000 idle waits: pickups in the order they were sent",
        across="jobs sent",
        upward="ms",
        lines={
            f"{side} {number}": [(nth, round(ms, 3)) for nth, ms in enumerate(took, 1)]
            for side, found in times.items()
            for number, took in enumerate(found, 1)
        },
    )


IDLE_WAITS = Case("idle_waits", "10,000 idle waits in one process", of_idle_waits)
