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
    def drain(yard: Yard) -> Drained:
        jobs = stage.jobs(DRAINED)
        yard.enqueue(jobs, random.Random(jobs).choices(TYPES, k=jobs))  # as jobs come, not in turns
        return yard.drain(jobs, names=TYPES)

    return in_turns(stage, MANY_TYPES.name, MANY_TYPES.title, 0.7, good=plain(stage), bad=drain)


MANY_PRIORITIES = Case("many_priorities", "1,000 distinct priorities", of_many_priorities)
MANY_TYPES = Case("many_types", "500 job types claimed by one worker", of_many_types)
