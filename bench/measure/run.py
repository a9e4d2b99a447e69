"""Run: claim, run and settle jobs that all wait at the beginning (a drain).

All workers are connected before the drain begins. Then the server is made quiet: the tables that
the load filled are vacuumed and analysed, and their pages are on disk. `after_load` leaves this
out: then a part of the load's work falls into the drain.

It is timed from the first call of a handler until the store has no unsettled job. So the start of
the workers is not in it, and the last acknowledgement is. It counts only if every job ran once: the
number of calls and the sum of the job numbers are right, no job is left over, and all are finished
where finished jobs are kept.
"""

from __future__ import annotations

from bench.measure.prepared_peer import InvalidMeasurement, PreparedPeer, Timing
from bench.measure.workers import start_workers
from bench.peer import Plan


def drain(
    plan: Plan, prepared: PreparedPeer, *, after_load: bool = False, earlier: int = 0
) -> Timing:
    """Drain the plan's jobs; `earlier` is how many jobs were finished in this store before."""
    prepared.store.make_quiet(vacuum=False)
    prepared.run("enqueue_bulk", plan.jobs, plan)
    with start_workers(plan, prepared) as workers:
        if not after_load:
            prepared.store.make_quiet(vacuum=True)
        workers.start()
        timing = workers.wait_until_settled(plan.jobs)
        count = workers.calls.count()
    expected_sum = plan.jobs * (plan.jobs - 1) // 2
    if (count.calls, count.sum) != (plan.jobs, expected_sum):
        raise InvalidMeasurement(f"handlers ran {count.calls} times for {plan.jobs} jobs")
    prepared.check_finished(earlier + plan.jobs)
    return timing
