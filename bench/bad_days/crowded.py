"""Crowded: jobs that are none of the worker's business stand in the same tables.

Waiting jobs of other types, jobs that are due much later, finished jobs that are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from bench.bad_days.sides import in_turns, plain
from bench.cases import Case, Stage
from bench.findings import Seen
from bench.lots import NOBODYS, NOOP
from bench.yard import Yard

OTHERS = [f"{NOBODYS}_{number}" for number in range(10)]
LATER = timedelta(days=30)


def crowded(name: str, title: str, crowd: Callable[[Stage, Yard], None]) -> Case:
    def run(stage: Stage) -> Seen:
        def make_bad(yard: Yard) -> None:
            crowd(stage, yard)

        day = plain(stage)
        return in_turns(stage, name, title, 0.9, good=day, bad=day, make_bad=make_bad)

    return Case(name, title, run)


def of_other_types(stage: Stage, yard: Yard) -> None:
    yard.enqueue(stage.jobs(1_000_000), OTHERS)


def due_later(stage: Stage, yard: Yard) -> None:
    yard.enqueue(stage.jobs(1_000_000), [NOOP], delay=LATER)


def finished(stage: Stage, yard: Yard) -> None:
    yard.add_finished(stage.jobs(5_000_000))


OTHER_TYPES = crowded("other_types", "1,000,000 waiting jobs of other types", of_other_types)
DUE_LATER = crowded("due_later", "1,000,000 jobs due in the future", due_later)
FINISHED = crowded("finished", "5,000,000 finished jobs", finished)
