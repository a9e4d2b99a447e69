"""Check: drain jobs of a millisecond by two processes, and read the logs of their handlers.

A rule that is only nearly kept looks exact as long as jobs take no time. So these jobs take a
millisecond, and there are two workers. Jobs are enqueued one by one, in order: some peers give the
jobs of one call no order among themselves.
"""

from __future__ import annotations

from dataclasses import replace

from bench.admit.exactness import findings, most_above, most_within, read_runs
from bench.admit.variants import Variant, values_of
from bench.measure.workers import start_workers
from bench.peer import Plan
from bench.server import Postgres

PROCESSES = 2
MILLISECOND = {"logged": True, "sleep_ms": 1}


def check(variant: Variant, jobs: int, postgres: Postgres) -> dict[str, float]:
    """Return the rate, what ran at once at most, and how often the order was violated."""
    plan = Plan(jobs, processes=PROCESSES)
    logged = replace(variant, options={**variant.options, **MILLISECOND})
    with logged.prepared(postgres) as prepared:
        prepared.run("enqueue_single", plan.jobs)
        with start_workers(plan, prepared) as workers:
            prepared.store.make_quiet(vacuum=True)
            workers.start()
            timing = workers.wait_until_settled(plan.jobs)
            runs = read_runs(workers.calls.folder)
    values = values_of(timing)
    values["ran_again"] = len(runs) - len({run.number for run in runs})
    if variant.rule.kind != "rate":
        return values | findings(runs, variant.rule)
    starts = [run.began / 1e9 for run in runs]
    return values | {
        "mean": round((len(starts) - 1) / (starts[-1] - starts[0]), 2),
        "most_in_a_second": most_within(starts, 1.0),
        "most_above": round(most_above(starts, variant.rule.slots), 1),
    }
