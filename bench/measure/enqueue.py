"""Enqueue: time from the first enqueue call to the last answer, measured in the driver."""

from __future__ import annotations

from bench.measure.prepared_peer import InvalidMeasurement, PreparedPeer, Timing
from bench.peer import Plan


def enqueue(verb: str, plan: Plan, prepared: PreparedPeer) -> Timing:
    timing = prepared.measure(verb, plan, vacuum=False)
    if (enqueued := prepared.unfinished()) != plan.jobs:
        raise InvalidMeasurement(f"{enqueued} of {plan.jobs} jobs were enqueued")
    return timing
