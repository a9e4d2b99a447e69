"""Fair: how long the first job of a new tenant waits behind many jobs of another one.

A worker is busy with the crowd, whose jobs take five milliseconds. Then one tenant after another
enqueues its jobs in one call. The time from before that call until the first of them begins is
measured.
"""

from __future__ import annotations

import inspect
import time
from pathlib import Path

from bench.admit.variants import Variant
from bench.driver_process import DriverFailed
from bench.measure.workers import start_workers
from bench.peer import Plan
from bench.pickup_log import read_pickups
from bench.server import Postgres
from howdah import Queue

PAUSE = 0.5  # seconds between two tenants
PICKED_UP_WITHIN = 60.0
POLL = 0.005


def lacking() -> str | None:
    """Return why this code cannot be measured, or None."""
    if "fair" in inspect.signature(Queue.job).parameters:
        return None
    return "Queue.job of this code has no option `fair`"


def first_jobs_ms(
    variant: Variant, crowd: int, tenants: int, postgres: Postgres
) -> list[dict[str, float]]:
    """Return the wait of each tenant's first job."""
    with variant.prepared(postgres) as prepared:
        prepared.run("enqueue_bulk", crowd)
        with start_workers(Plan(crowd), prepared) as workers:
            prepared.store.make_quiet(vacuum=True)
            workers.start()
            workers.wait_for_calls(1)
            with prepared.driver("send_tenant", tenants) as sender:
                sender.wait_until_ready()
                sender.send_start()
                for nth in range(1, tenants + 1):
                    time.sleep(PAUSE)
                    sender.send_start()
                    _wait_for_tenants(workers.calls.folder, nth)
                if workers.calls.count().calls >= crowd:
                    raise AssertionError("the crowd was done before the last tenant came")
            first: dict[int, float] = {}
            for pickup in read_pickups(workers.calls.folder):
                first.setdefault(pickup.sent_ns, pickup.ms)
    return [{"first_ms": round(ms, 2)} for _, ms in sorted(first.items())]


def _wait_for_tenants(folder: Path, tenants: int) -> None:
    deadline = time.monotonic() + PICKED_UP_WITHIN
    while len({pickup.sent_ns for pickup in read_pickups(folder)}) < tenants:
        if time.monotonic() > deadline:
            raise DriverFailed(f"tenant {tenants} waited for {PICKED_UP_WITHIN:.0f} s")
        time.sleep(POLL)
