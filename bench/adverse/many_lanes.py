"""Many lanes: jobs of many types or priorities, all run by one worker."""

from __future__ import annotations

import random

from bench.adverse.pair import DRAINED, compare_drains, drain_noops
from bench.case_record import CaseResult
from bench.cases import Case, CaseContext
from bench.sample_jobs import NOOP
from bench.testbed import DrainResult, Testbed

PRIORITIES = range(1, 1001)
TYPES = [f"{NOOP}_{number:03d}" for number in range(500)]


def measure_many_priorities(context: CaseContext) -> CaseResult:
    def drain(testbed: Testbed) -> DrainResult:
        jobs = context.jobs(DRAINED)
        testbed.enqueue(jobs, [NOOP], PRIORITIES)
        return testbed.drain(jobs)

    name, title = MANY_PRIORITIES.name, MANY_PRIORITIES.title
    baseline = drain_noops(context)
    return compare_drains(context, name, title, 0.7, baseline=baseline, adverse=drain)


def measure_many_types(context: CaseContext) -> CaseResult:
    return _measure_types(context, MANY_TYPES, TYPES)


def measure_scattered_types(context: CaseContext) -> CaseResult:
    jobs = context.jobs(DRAINED)
    return _measure_types(context, SCATTERED_TYPES, random.Random(jobs).choices(TYPES, k=jobs))


def _measure_types(context: CaseContext, case: Case, names: list[str]) -> CaseResult:
    def drain(testbed: Testbed) -> DrainResult:
        jobs = context.jobs(DRAINED)
        testbed.enqueue(jobs, names)
        return testbed.drain(jobs, names=TYPES)

    baseline = drain_noops(context)
    return compare_drains(context, case.name, case.title, 0.7, baseline=baseline, adverse=drain)


MANY_PRIORITIES = Case("many_priorities", "1,000 distinct priorities", measure_many_priorities)
MANY_TYPES = Case("many_types", "500 job types claimed by one worker", measure_many_types)
SCATTERED_TYPES = Case(
    "scattered_types",
    "500 job types in random order, claimed by one worker",
    measure_scattered_types,
)
