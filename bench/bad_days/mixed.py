"""Mixed: of a hundred jobs, five fail and are retried, ten report progress, one is cancelled.

The handler is `mixed` in hands.py. Retries come back after a tenth of a second, through the same
waiting room as any other backoff. A job counts once, when it has ended.
"""

from __future__ import annotations

from bench.bad_days.sides import DRAINED, in_turns, plain
from bench.cases import Case, Stage
from bench.findings import Seen
from bench.lots import MIXED
from bench.yard import Drained, Yard


def of_mixed_jobs(stage: Stage) -> Seen:
    def drain(yard: Yard) -> Drained:
        jobs = stage.jobs(DRAINED)
        yard.enqueue(jobs, [MIXED])
        return yard.drain(jobs, names=[MIXED])

    return in_turns(stage, MIXED_JOBS.name, MIXED_JOBS.title, 0.6, good=plain(stage), bad=drain)


MIXED_JOBS = Case(
    "mixed", "5 % failing and retried, 10 % reporting progress, 1 % cancelled", of_mixed_jobs
)
