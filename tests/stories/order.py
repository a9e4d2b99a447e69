"""Order: highest priority first, and within a priority the oldest first.

To the letter where a claim was watched from inside its own transaction (a `Look`); for all
other claims as far as the trail can tell: in quiet times, and only against jobs that had stood in
line for `MARGIN` and stood there for `MARGIN` more, so that everybody must have seen them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from tests.stories.facts import Facts
from tests.stories.trail import Move

MARGIN = 2.0


def no_better_job_was_passed_over(facts: Facts) -> Iterator[str]:
    for look in facts.history.looks:
        places = [(-priority, made) for _, priority, made in look.claimed]
        if places != sorted(places):
            yield f"{look.worker} was handed jobs out of order: {look.claimed}"
        for id, priority, made in look.stood:
            if places and (-priority, made) < max(places):
                yield f"{look.worker} passed over {id} ({priority}, {made}) for {max(places)}"


def no_better_job_was_left_waiting(facts: Facts) -> Iterator[str]:
    waits = sorted(_waits(facts), reverse=True)  # the next to join the line is the last
    line: list[tuple[int, datetime, float, str]] = []  # the best first
    for claim in sorted(_claims(facts), key=lambda move: move.at):
        while waits and waits[-1].since + MARGIN < claim.at:
            wait = waits.pop()
            heapq.heappush(line, (-wait.priority, wait.made, wait.until, wait.job))
        while line and line[0][2] - MARGIN <= claim.at:
            heapq.heappop(line)
        if line and line[0][:2] < (-claim.priority, claim.created_at):
            yield f"job {line[0][3]} was left waiting when job {claim.job} was claimed"


class _Wait(NamedTuple):
    since: float
    until: float
    priority: int
    made: datetime
    job: str


def _waits(facts: Facts) -> Iterator[_Wait]:
    """Return the time each job stood in line for the first time."""
    for job, (made, *later) in facts.trail.moves.items():
        if made.was is None and made.at_once and later and _quiet(facts, made.at):
            yield _Wait(made.at, later[0].at, made.priority, made.created_at, job)


def _claims(facts: Facts) -> Iterator[Move]:
    """Return first claims by workers that take jobs of every type."""
    everybody = {run.worker for run in facts.history.runs}
    for move in facts.moves:
        now = move.now
        if now is None or now.status != "claimed" or now.attempts != 1:
            continue
        if now.worker in everybody and move.at_once and _quiet(facts, move.at):
            yield move


def _quiet(facts: Facts, at: float) -> bool:
    return not any(
        fault.began - MARGIN <= at <= fault.healed + facts.lease for fault in facts.history.faults
    )
