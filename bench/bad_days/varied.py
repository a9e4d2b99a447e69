"""Varied: the jobs stand in many lanes, and one worker takes them all."""

from __future__ import annotations

import random

from bench.bad_days.sides import DRAINED, in_turns, plain
from bench.cases import Case, Stage
from bench.findings import Seen
from bench.lots import NOOP
from bench.yard import Drained, Yard

PRIORITIES = range(1, 1001)
TYPES = [f"{NOOP}_{number:03d}" for number in range(500)]


def of_many_priorities(stage: Stage) -> Seen:
    def drain(yard: Yard) -> Drained:
        jobs = stage.jobs(DRAINED)
        yard.enqueue(jobs, [NOOP], PRIORITIES)
        return yard.drain(jobs)

    return in_turns(
        stage, MANY_PRIORITIES.name, MANY_PRIORITIES.title, 0.7, good=plain(stage), bad=drain
    )


def of_many_types(stage: Stage) -> Seen:
    return _of_types(stage, MANY_TYPES, TYPES)


def of_scattered_types(stage: Stage) -> Seen:
    jobs = stage.jobs(DRAINED)
    return _of_types(stage, SCATTERED_TYPES, random.Random(jobs).choices(TYPES, k=jobs))


def _of_types(stage: Stage, case: Case, names: list[str]) -> Seen:
    def drain(yard: Yard) -> Drained:
        jobs = stage.jobs(DRAINED)
        yard.enqueue(jobs, names)
        return yard.drain(jobs, names=TYPES)

    return in_turns(stage, case.name, case.title, 0.7, good=plain(stage), bad=drain)


MANY_PRIORITIES = Case("many_priorities", "1,000 distinct priorities", of_many_priorities)
MANY_TYPES = Case("many_types", "500 job types claimed by one worker", of_many_types)
SCATTERED_TYPES = Case(
    "scattered_types", "500 job types that come at random, not in turns", of_scattered_types
)
