"""Backlog: run the first jobs of a line, for lines of several lengths.

Each length has its own database. It is filled once, and refilled after each measurement. The
shortest line is empty after a moment, and most of that time is the start of the worker.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.case_record import CaseResult
from bench.cases import Case, CaseContext
from bench.growth.sweep import Rates, sweep

STEPS = (10_000, 100_000, 1_000_000, 5_000_000)
MEASURED = 100_000


def measure_backlog(context: CaseContext) -> CaseResult:
    with ExitStack() as stack:
        testbeds = {context.jobs(step): stack.enter_context(context.testbed()) for step in STEPS}
        for waiting, testbed in testbeds.items():
            testbed.enqueue(waiting)
            testbed.vacuum_and_checkpoint()

        def measure(waiting: int) -> Rates:
            drain = testbeds[waiting].drain_first(min(waiting, context.jobs(MEASURED)))
            testbeds[waiting].enqueue(drain.jobs)
            return {"worker": drain.rate}

        return sweep(
            context,
            list(testbeds),
            measure,
            case=BACKLOG.name,
            title=BACKLOG.title,
            x_label="jobs waiting",
        )


BACKLOG = Case("backlog", "Jobs per second by backlog", measure_backlog)
