"""History: drain the same jobs beside more and more finished jobs.

Each length has its own database, filled once. All jobs finished today: this is the worst case, one
partition that is also written to.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.case_record import CaseResult
from bench.cases import Case, CaseContext
from bench.growth.sweep import Rates, sweep

STEPS = (0, 500_000, 2_000_000, 5_000_000)
MEASURED = 100_000


def measure_history(context: CaseContext) -> CaseResult:
    with ExitStack() as stack:
        testbeds = {
            int(step * context.scale): stack.enter_context(context.testbed()) for step in STEPS
        }
        for finished, testbed in testbeds.items():
            testbed.insert_finished(finished)
            testbed.vacuum_and_checkpoint()

        def measure(finished: int) -> Rates:
            jobs = context.jobs(MEASURED)
            testbeds[finished].enqueue(jobs)
            return {"worker": testbeds[finished].drain(jobs).rate}

        return sweep(
            context,
            list(testbeds),
            measure,
            case=HISTORY.name,
            title=HISTORY.title,
            x_label="finished jobs kept",
            logarithmic=False,
        )


HISTORY = Case("history", "Jobs per second by history", measure_history)
