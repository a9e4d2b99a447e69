"""History: the same drain beside ever more finished jobs that are kept.

Every length has a database of its own, filled once. All finished today: the worst case, one
partition that is also written to.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.cases import Case, Stage
from bench.findings import Seen
from bench.growth.over import Rates, over

STEPS = (0, 500_000, 2_000_000, 5_000_000)
MEASURED = 100_000


def over_histories(stage: Stage) -> Seen:
    with ExitStack() as stack:
        yards = {int(step * stage.scale): stack.enter_context(stage.yard()) for step in STEPS}
        for finished, yard in yards.items():
            yard.add_finished(finished)
            yard.settle_down()

        def measure(finished: int) -> Rates:
            jobs = stage.jobs(MEASURED)
            yards[finished].enqueue(jobs)
            return {"worker": yards[finished].drain(jobs).rate}

        return over(
            stage,
            list(yards),
            measure,
            case=HISTORY.name,
            title=HISTORY.title,
            across="finished jobs kept",
            logarithmic=False,
        )


HISTORY = Case("history", "Jobs per second by history", over_histories)
