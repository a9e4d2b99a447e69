"""Problems: what a person should look at, worst first.

They are found in the overview, the list of workers and the doctor's checks, so finding them costs
one read of each. A type is judged by its last minutes, never by a single job.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta

import msgspec

from howdah.observe.doctor import Diagnosis, Level, examine
from howdah.observe.overview import Overview, TypeNow, overview
from howdah.observe.workers import WorkerNow
from howdah.observe.workers import workers as read_workers
from howdah.store import Store, query
from howdah.text.wording import jobs, length, percent, rate, waiting

FAILING, FAILING_BADLY = 0.1, 0.5  # failed attempts, as a share of all
ENOUGH = 5  # failed attempts, before the share is judged
LATE, VERY_LATE = timedelta(minutes=1), timedelta(minutes=15)  # that the first job may wait
UNSERVED = timedelta(seconds=5)  # that a job may wait before a missing worker is a problem
STUCK = timedelta(minutes=5)  # that a foreign worker may hold a job


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person should look at."""

    # stuck, failing, unread, no_worker, falling_behind, paused, late, or a check's name
    kind: str
    level: Level
    sentence: str
    advice: str
    job_type: str | None = None
    worker_id: str | None = None


async def problems(store: Store, *, within: timedelta = query.WITHIN) -> list[Problem]:
    """Find what is wrong, worst first."""
    now = await overview(store, within=within, trend=False)
    try:
        workers = await read_workers(store, within=within)
    except query.TookTooLong:
        workers = []
    return problems_in(now, workers, await examine(store, within=within))


def problems_in(now: Overview, workers: list[WorkerNow], diagnosis: Diagnosis) -> list[Problem]:
    """Find what is wrong in answers that were read before."""
    problems = [
        *(problem for worker in workers for problem in _of_worker(worker, now)),
        *(problem for row in now.types for problem in _of_type(row)),
        *(
            Problem(
                kind=check.name, level=check.level, sentence=check.sentence, advice=check.advice
            )
            for check in diagnosis.checks
            if check.level >= Level.WARNING
        ),
    ]
    if now.late:
        problems.append(
            Problem(
                kind="late",
                level=Level.WARNING,
                sentence=f"These took too long to count and are missing: {', '.join(now.late)}.",
                advice="The usual cause is dead rows that vacuum cannot remove. See the check "
                "of the oldest transaction.",
            )
        )
    return sorted(problems, key=lambda problem: -problem.level)


def _of_worker(worker: WorkerNow, now: Overview) -> Generator[Problem]:
    """Find jobs whose worker may be gone."""
    if worker.alive or not worker.holds:
        return
    if worker.beats:
        sentence = f"Worker {worker.id} is silent and still holds {jobs(worker.holds)}."
        advice = "A live worker recovers them by itself. If no worker is alive, start one."
    else:
        claimed = [attempt.claimed_at for attempt in worker.attempts if attempt.claimed_at]
        since = min(claimed, default=None)
        if since is None or now.at - since < STUCK:
            return
        sentence = (
            f"The foreign worker {worker.id} has held {jobs(worker.holds)} "
            f"for up to {length(now.at - since)}."
        )
        advice = "Live workers recover such jobs after --stale-after; `howdah recover` does it now."
    yield Problem(
        kind="stuck", level=Level.WARNING, sentence=sentence, advice=advice, worker_id=worker.id
    )


def _of_type(row: TypeNow) -> Generator[Problem]:
    name = row.job_type
    if row.paused is not None:
        if row.waiting:
            why = f" ({row.paused.reason})" if row.paused.reason else ""
            yield Problem(
                kind="paused",
                level=Level.WARNING,
                sentence=f"{name} is paused{why}, and {waiting(row.waiting)}.",
                advice=f"`howdah resume {name}` when it may go on.",
                job_type=name,
            )
    elif row.waiting and row.oldest is not None:
        held = row.claimed + row.running
        if not row.workers and not held and row.oldest > UNSERVED:
            yield Problem(
                kind="no_worker",
                level=Level.CRITICAL,
                sentence=f"No live worker knows the type {name}: {waiting(row.waiting)}, "
                f"the first for {length(row.oldest)}.",
                advice="Start a worker whose queue has this function, or look for a misspelt type.",
                job_type=name,
            )
        elif row.oldest > LATE:
            speed = (
                f"; at {rate(row.per_second)} that is {_work_left(row)}" if row.per_second else ""
            )
            yield Problem(
                kind="falling_behind",
                level=Level.CRITICAL if row.oldest > VERY_LATE else Level.WARNING,
                sentence=f"{name} is {length(row.oldest)} behind: {waiting(row.waiting)}{speed}.",
                advice="Add workers or slots, or make the job faster. It may wait for something "
                "that is slow.",
                job_type=name,
            )
    if row.unread:
        they, them = ("It waits", "it") if row.unread == 1 else ("They wait", "them")
        yield Problem(
            kind="unread",
            level=Level.WARNING,
            sentence=f"{jobs(row.unread)} of {name} cannot be read by the workers that met {them}. "
            f"{they} for a worker that can.",
            advice="`howdah why ID` names the field. Start the newer workers, or cancel what was "
            "enqueued by mistake.",
            job_type=name,
        )
    failed = (row.failure_rate or 0.0) * row.run.jobs
    if row.failure_rate is not None and row.failure_rate >= FAILING and failed >= ENOUGH:
        yield Problem(
            kind="failing",
            level=Level.CRITICAL if row.failure_rate >= FAILING_BADLY else Level.WARNING,
            sentence=f"{percent(row.failure_rate)} of the attempts of {name} failed "
            "in the last five minutes.",
            advice="Look at its failures. Often one error causes most of them.",
            job_type=name,
        )


def _work_left(row: TypeNow) -> str:
    at_least = "more than " if row.waiting.more else ""
    return f"{at_least}{length(timedelta(seconds=row.waiting.jobs / row.per_second))} of work"
