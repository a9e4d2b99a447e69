"""Unrelated jobs: the tables hold many jobs that the worker does not take.

They are waiting jobs of other types, jobs that are due much later, or finished jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from bench.adverse.pair import compare_drains, drain_noops
from bench.case_record import CaseResult
from bench.cases import Case, CaseContext
from bench.sample_jobs import NOOP, UNCLAIMED
from bench.testbed import Testbed

OTHER_JOB_TYPES = [f"{UNCLAIMED}_{number}" for number in range(10)]
LATER = timedelta(days=30)


def unrelated_jobs(name: str, title: str, add: Callable[[CaseContext, Testbed], None]) -> Case:
    def run(context: CaseContext) -> CaseResult:
        def make_adverse(testbed: Testbed) -> None:
            add(context, testbed)

        drain = drain_noops(context)
        return compare_drains(
            context, name, title, 0.9, baseline=drain, adverse=drain, make_adverse=make_adverse
        )

    return Case(name, title, run)


def add_other_types(context: CaseContext, testbed: Testbed) -> None:
    testbed.enqueue(context.jobs(1_000_000), OTHER_JOB_TYPES)


def add_due_later(context: CaseContext, testbed: Testbed) -> None:
    testbed.enqueue(context.jobs(1_000_000), [NOOP], delay=LATER)


def add_finished(context: CaseContext, testbed: Testbed) -> None:
    testbed.insert_finished(context.jobs(5_000_000))


OTHER_TYPES = unrelated_jobs(
    "other_types", "1,000,000 waiting jobs of other types", add_other_types
)
DUE_LATER = unrelated_jobs("due_later", "1,000,000 jobs due in the future", add_due_later)
FINISHED = unrelated_jobs("finished", "5,000,000 finished jobs", add_finished)
