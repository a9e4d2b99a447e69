"""Order: highest priority first, and within a priority the oldest first.

Claims of the inspector (`CheckedClaim`) are checked exactly. All other claims are checked with the
move log: only when there is no fault, and only against jobs that were in line `MARGIN` seconds
before and after the claim, so that every worker could see them. Jobs that have to be admitted are
left out: they join the line later than they are enqueued.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from tests.stories.move_log import Move
from tests.stories.story_result import StoryResult

MARGIN = 2.0


def no_better_job_was_skipped(result: StoryResult) -> Iterator[str]:
    for checked in result.history.checked_claims:
        keys = [(-priority, made) for _, priority, made in checked.claimed]
        if keys != sorted(keys):
            yield f"{checked.worker} claimed jobs out of order: {checked.claimed}"
        for id, priority, made in checked.unclaimed:
            if keys and (-priority, made) < max(keys):
                yield f"{checked.worker} skipped {id} ({priority}, {made}) for {max(keys)}"


def no_better_job_was_left_waiting(result: StoryResult) -> Iterator[str]:
    waits = sorted(_waits(result), reverse=True)  # the next to join the line is at the end
    line: list[tuple[int, datetime, float, str]] = []  # the best first
    for claim in sorted(_claims(result), key=lambda move: move.at):
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


def _waits(result: StoryResult) -> Iterator[_Wait]:
    """Return how long each job waited in line for the first time."""
    for job, (made, *later) in result.move_log.moves.items():
        if job in result.move_log.admission.admissions:
            continue
        if made.before is None and made.at_once and later and _no_fault(result, made.at):
            yield _Wait(made.at, later[0].at, made.priority, made.created_at, job)


def _claims(result: StoryResult) -> Iterator[Move]:
    """Return the first claims of jobs, by workers that claim every type."""
    full_workers = {run.worker for run in result.history.runs}
    for move in result.moves:
        after = move.after
        if after is None or after.status != "claimed" or after.attempts != 1:
            continue
        if move.job in result.move_log.admission.admissions:
            continue
        if after.worker in full_workers and move.at_once and _no_fault(result, move.at):
            yield move


def _no_fault(result: StoryResult, at: float) -> bool:
    return not any(
        fault.began - MARGIN <= at <= fault.ended + result.lease for fault in result.history.faults
    )
