"""Pickup: time from before the enqueue call to the first line of the handler.

Sender and worker are two processes on an otherwise idle machine, and both are warm. The server is
made quiet before the first job is sent. The next job is sent a few milliseconds after the one
before was picked up, when the worker is idle again.
"""

from __future__ import annotations

import random
import time

from bench.measure.prepared_peer import PreparedPeer, Timing
from bench.measure.workers import start_workers
from bench.peer import Plan

PAUSES = (0.001, 0.003)  # seconds from a pickup to the next job
WARM_UP = 20  # jobs before those that are measured


def pickup(plan: Plan, prepared: PreparedPeer) -> Timing:
    with start_workers(plan, prepared) as workers:
        workers.start()
        prepared.run("enqueue_single", WARM_UP)
        workers.wait_until_settled(WARM_UP)
        # One more than is sent: the sender must not end while its usage is read.
        with prepared.driver("send", plan.jobs + WARM_UP + 1) as sender:
            sender.wait_until_ready()
            prepared.store.make_quiet(vacuum=True)
            sender.send_start()

            def send(first: int, last: int) -> None:
                for sent in range(first, last + 1):
                    time.sleep(random.uniform(*PAUSES))
                    sender.send_start()
                    workers.wait_until_picked_up(sent)

            send(1, WARM_UP)
            before = prepared.usage(workers.processes)
            send(WARM_UP + 1, WARM_UP + plan.jobs)
            usage = prepared.usage(workers.processes).since(before)
            times = workers.calls.pickups_ms()
    return Timing(plan.jobs, pickups_ms=tuple(times[WARM_UP:]), usage=usage)
