"""Claim and settle: the two statements alone, on two connections, without a worker.

This is the workload `floor`: the part of a drain that the database needs in any case.
"""

from __future__ import annotations

from bench.measure.prepared_peer import InvalidMeasurement, PreparedPeer, Timing
from bench.peer import Plan


def claim_and_settle(plan: Plan, prepared: PreparedPeer) -> Timing:
    prepared.run("enqueue_bulk", plan.jobs, plan)
    timing = prepared.measure("floor", plan, vacuum=True)
    if left := prepared.unfinished():
        raise InvalidMeasurement(f"{left} of {plan.jobs} jobs are left over")
    prepared.check_finished(plan.jobs)
    return timing
