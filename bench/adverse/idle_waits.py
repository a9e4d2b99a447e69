"""Idle waits: ten thousand `handle.result()` are open in the process that enqueues jobs.

Pickups are timed as in measure/pickup.py, with the waits and without. The memory of a wait is the
growth of the process, divided by the number of waits.
"""

from __future__ import annotations

import statistics
import time

from bench.adverse.pair import ADVERSE, BASELINE
from bench.aggregate import percentile
from bench.case_record import CaseResult, Curve, Finding
from bench.cases import Case, CaseContext
from bench.driver_process import DriverFailed
from bench.sample_jobs import PICKUP
from bench.testbed import Testbed

WAITS = 10_000
PICKUPS, WARM_UP = 300, 20
UNCHANGED = 1.1  # of the time without waits: pickups of one run differ by so much
KIB_PER_WAIT = 20.0
TIMEOUT = 60.0


def measure_idle_waits(context: CaseContext) -> CaseResult:
    waits, pickups = context.jobs(WAITS), max(20, context.jobs(PICKUPS))
    times: dict[str, list[list[float]]] = {BASELINE: [], ADVERSE: []}
    kib: list[float] = []
    for _, is_adverse in context.turns():
        with context.testbed() as testbed:
            pickups_ms, growth_kib = _send(testbed, waits if is_adverse else 0, pickups)
        times[ADVERSE if is_adverse else BASELINE].append(pickups_ms)
        if is_adverse:
            kib.append(growth_kib / waits)
    medians = {
        side: statistics.median(percentile(pickups_ms, 50) for pickups_ms in repeated)
        for side, repeated in times.items()
    }
    return CaseResult(
        [
            Finding(
                case=IDLE_WAITS.name,
                title=f"10,000 idle waits, pickup p50 ({medians[BASELINE]:.2f} ms without)",
                measured=round(medians[ADVERSE] / medians[BASELINE], 3),
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


def _send(testbed: Testbed, waits: int, pickups: int) -> tuple[list[float], float]:
    with (
        testbed.worker(names=[PICKUP]) as worker,
        testbed.driver("send", pickups + WARM_UP, waits=waits) as sender,
    ):
        growth_kib = float(sender.read("kib"))
        sender.wait_until_ready()
        sender.send_start()
        sender.read("sent")
        deadline = time.monotonic() + TIMEOUT
        while len(times := worker.calls.pickups_ms()) < pickups + WARM_UP:
            if time.monotonic() > deadline:
                raise DriverFailed(f"{len(times)} of {pickups + WARM_UP} jobs were picked up")
            time.sleep(0.01)
    return times[WARM_UP:], growth_kib


def _curve(times: dict[str, list[list[float]]]) -> Curve:
    return Curve(
        case=IDLE_WAITS.name,
        title="10,000 idle waits: pickups in the order in which they were sent",
        x_label="jobs sent",
        y_label="ms",
        series={
            f"{side} {number}": [(nth, round(ms, 3)) for nth, ms in enumerate(pickups_ms, 1)]
            for side, repeated in times.items()
            for number, pickups_ms in enumerate(repeated, 1)
        },
    )


IDLE_WAITS = Case("idle_waits", "10,000 idle waits in one process", measure_idle_waits)
