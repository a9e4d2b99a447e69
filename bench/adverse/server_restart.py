"""Server restart: the server is away for a while under load, and then jobs should start at once.

The producer goes on; its calls fail while the server is away, and those jobs count for nothing.
The case has a server of its own, because it stops it.
"""

from __future__ import annotations

import time
from collections import defaultdict

from bench.adverse.regime import Regime
from bench.aggregate import percentile
from bench.case_record import CaseResult, Curve, Finding
from bench.cases import Case, CaseContext
from bench.measure.prepared_peer import InvalidMeasurement
from bench.pickup_log import Pickup, read_pickups
from bench.server import restartable_postgres
from bench.testbed import new_testbed

RATE = 200  # jobs/s
BEFORE, AWAY, AFTER = 0.1, 0.25, 0.25  # minutes
COUNTED = 10.0  # seconds after the first job that could be enqueued again
LONGEST_MS = 300.0
SPARE = 30.0  # seconds for which the producer could go on


def measure_restart(context: CaseContext) -> CaseResult:
    before, away, after = (context.seconds(minutes) for minutes in (BEFORE, AWAY, AFTER))
    regime = Regime(rate=RATE)
    with (
        restartable_postgres() as postgres,
        new_testbed(postgres) as testbed,
        regime.at_work(testbed, before + away + after + SPARE) as worker,
    ):
        testbed.wait_for_calls(worker, 1)
        time.sleep(before)
        postgres.stop()
        stopped_ns = time.monotonic_ns()
        time.sleep(away)
        postgres.start()
        time.sleep(after)
        worker.driver.check_alive()
        pickups = read_pickups(worker.folder)
    return _result(pickups, stopped_ns)


def _result(pickups: list[Pickup], stopped_ns: int) -> CaseResult:
    sent_since = [pickup.sent_ns for pickup in pickups if pickup.sent_ns >= stopped_ns]
    if not sent_since:
        raise InvalidMeasurement("no job ran after the restart")
    back_ns = min(sent_since)
    counted = [
        pickup.ms for pickup in pickups if 0 <= pickup.sent_ns - back_ns < COUNTED * 1_000_000_000
    ]
    usual = [pickup.ms for pickup in pickups if pickup.began_ns < stopped_ns]
    return CaseResult(
        [
            Finding(
                case=SERVER_RESTART.name,
                title=f"{SERVER_RESTART.title}, pickup p99 of the {COUNTED:g} s afterwards"
                f" ({percentile(usual, 99):.1f} ms before)",
                measured=round(percentile(counted, 99), 1),
                sense="at most",
                bound=LONGEST_MS,
                unit=" ms",
            )
        ],
        [_curve(pickups, back_ns)],
    )


def _curve(pickups: list[Pickup], back_ns: int) -> Curve:
    by_second: defaultdict[int, list[float]] = defaultdict(list)
    for pickup in pickups:
        by_second[(pickup.sent_ns - back_ns) // 1_000_000_000].append(pickup.ms)
    return Curve(
        case=SERVER_RESTART.name,
        title=f"{SERVER_RESTART.title}: pickups by the second in which the job was sent",
        x_label="seconds since the server is back",
        y_label="ms",
        series={
            f"p{percent}": [
                (second, round(percentile(ms, percent), 3))
                for second, ms in sorted(by_second.items())
            ]
            for percent in (50, 99)
        },
    )


SERVER_RESTART = Case(
    "server_restart", "a server that is away for 15 seconds, 200 jobs/s", measure_restart
)
