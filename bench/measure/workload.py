"""Workload: choose the measurement for a workload, and run it once."""

from __future__ import annotations

from bench.measure.claim_and_settle import claim_and_settle
from bench.measure.enqueue import enqueue
from bench.measure.pickup import pickup
from bench.measure.prepared_peer import PreparedPeer, Timing
from bench.measure.run import drain
from bench.peer import Plan
from bench.workloads import WORKLOADS


def measure(workload: str, plan: Plan, prepared: PreparedPeer) -> Timing:
    match WORKLOADS[workload].kind:
        case "enqueue":
            return enqueue(workload, plan, prepared)
        case "drain":
            return drain(plan, prepared)
        case "drain_after_load":
            return drain(plan, prepared, after_load=True)
        case "floor":
            return claim_and_settle(plan, prepared)
        case "pickup":
            return pickup(plan, prepared)
