"""Mixed: of a hundred jobs, five fail and are retried, ten report progress, one is cancelled.

The handler is `mixed` in case_driver.py. Retries run after a tenth of a second. They wait for their
`run_at` as every retry does. A job counts once, when it has ended.
"""

from __future__ import annotations

from bench.adverse.pair import DRAINED, compare_drains, drain_noops
from bench.case_record import CaseResult
from bench.cases import Case, CaseContext
from bench.sample_jobs import MIXED
from bench.testbed import DrainResult, Testbed


def measure_mixed_jobs(context: CaseContext) -> CaseResult:
    def drain(testbed: Testbed) -> DrainResult:
        jobs = context.jobs(DRAINED)
        testbed.enqueue(jobs, [MIXED])
        return testbed.drain(jobs, names=[MIXED])

    name, title = MIXED_JOBS.name, MIXED_JOBS.title
    baseline = drain_noops(context)
    return compare_drains(context, name, title, 0.6, baseline=baseline, adverse=drain)


MIXED_JOBS = Case(
    "mixed", "5 % failing and retried, 10 % reporting progress, 1 % cancelled", measure_mixed_jobs
)
