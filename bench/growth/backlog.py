"""Backlog: the first jobs of a line that is ever longer.

Every length has a database of its own, filled once and topped up after each measurement. The
shortest is over in a moment, and most of that is beginning.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.cases import Case, Stage
from bench.findings import Seen
from bench.growth.over import Rates, over

STEPS = (10_000, 100_000, 1_000_000, 5_000_000)
MEASURED = 100_000


def over_backlogs(stage: Stage) -> Seen:
    with ExitStack() as stack:
        yards = {stage.jobs(step): stack.enter_context(stage.yard()) for step in STEPS}
        for waiting, yard in yards.items():
            yard.enqueue(waiting)
            yard.settle_down()

        def measure(waiting: int) -> Rates:
            taken = yards[waiting].first_of(min(waiting, stage.jobs(MEASURED)))
            yards[waiting].enqueue(taken.jobs)
            return {"worker": taken.rate}

        return over(
            stage,
            list(yards),
            measure,
            case=BACKLOG.name,
            title=BACKLOG.title,
            across="jobs waiting",
        )


BACKLOG = Case("backlog", "Jobs per second by backlog", over_backlogs)
