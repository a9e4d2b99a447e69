"""Problems: what a person should look at, worst first.

Drawn from the overview, the workers and the doctor, so that it costs one look at each. A type is
judged by what it did in the last minutes, never by a single job.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta

import msgspec

from howdah.observe.doctor import Diagnosis, Level, examine
from howdah.observe.overview import Overview, TypeNow, overview
from howdah.observe.wording import jobs, length, waiting
from howdah.observe.workers import WorkerNow, crew
from howdah.store import Store, query

FAILING, FAILING_BADLY = 0.1, 0.5  # of all attempts
ENOUGH = 5  # failed attempts to speak of a rate
BEHIND, FAR_BEHIND = timedelta(minutes=1), timedelta(minutes=15)
UNHEARD = timedelta(seconds=5)  # a job may wait so long before a missing worker is told
STUCK = timedelta(minutes=5)  # that a stranger may hold a job


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something to look at."""

    # stuck, failing, unread, nobody_listens, falling_behind, paused, late, or a check's name
    kind: str
    level: Level
    sentence: str
    advice: str
    job_type: str | None = None
    worker_id: str | None = None


async def problems(store: Store, *, within: timedelta = query.WITHIN) -> list[Problem]:
    """Find what is wrong, worst first."""
    seen = await overview(store, within=within, trend=False)
    try:
        workers = await crew(store, within=within)
    except query.TookTooLong:
        workers = []
    return found(seen, workers, await examine(store, within=within))


def found(seen: Overview, workers: list[WorkerNow], diagnosis: Diagnosis) -> list[Problem]:
    """Find what is wrong in answers that are there already."""
    all_found = [
        *(problem for one in workers for problem in _stuck(one, seen)),
        *(problem for one in seen.types for problem in _of_type(one)),
        *(
            Problem(
                kind=check.name, level=check.level, sentence=check.sentence, advice=check.advice
            )
            for check in diagnosis.checks
            if check.level >= Level.WARNING
        ),
    ]
    if seen.late:
        all_found.append(
            Problem(
                kind="late",
                level=Level.WARNING,
                sentence=f"These took too long to count and are missing: {', '.join(seen.late)}.",
                advice="The usual cause is dead rows that cannot be cleaned away. See the check "
                "of the oldest transaction.",
            )
        )
    return sorted(all_found, key=lambda problem: -problem.level)


def _stuck(worker: WorkerNow, seen: Overview) -> Generator[Problem]:
    """Find jobs that are held by a worker that may be gone."""
    if worker.alive or not worker.holds:
        return
    if worker.beats:
        sentence = f"Worker {worker.id} is silent and still holds {jobs(worker.holds)}."
        advice = "A live worker recovers them by itself. If no worker is alive, start one."
    else:
        since = min((one.claimed_at for one in worker.attempts if one.claimed_at), default=None)
        if since is None or seen.at - since < STUCK:
            return
        sentence = (
            f"The foreign worker {worker.id} has held {jobs(worker.holds)} "
            f"for up to {length(seen.at - since)}."
        )
        advice = "Live workers recover such jobs after --stale-after; `howdah recover` does it now."
    yield Problem(
        kind="stuck", level=Level.WARNING, sentence=sentence, advice=advice, worker_id=worker.id
    )


def _of_type(one: TypeNow) -> Generator[Problem]:
    name = one.job_type
    if one.paused is not None:
        if one.waiting:
            why = f" ({one.paused.reason})" if one.paused.reason else ""
            yield Problem(
                kind="paused",
                level=Level.WARNING,
                sentence=f"{name} is paused{why}, and {waiting(one.waiting)}.",
                advice=f"`howdah resume {name}` when it may go on.",
                job_type=name,
            )
    elif one.waiting and one.oldest is not None:
        in_hands = one.claimed + one.running
        if not one.listeners and not in_hands and one.oldest > UNHEARD:
            yield Problem(
                kind="nobody_listens",
                level=Level.CRITICAL,
                sentence=f"No live worker knows the type {name}: {waiting(one.waiting)}, "
                f"the first for {length(one.oldest)}.",
                advice="Start a worker whose queue has this function, or look for a misspelt type.",
                job_type=name,
            )
        elif one.oldest > BEHIND:
            speed = f"; at {one.per_second:.1f}/s that is {_drain(one)}" if one.per_second else ""
            yield Problem(
                kind="falling_behind",
                level=Level.CRITICAL if one.oldest > FAR_BEHIND else Level.WARNING,
                sentence=f"{name} is {length(one.oldest)} behind: {waiting(one.waiting)}{speed}.",
                advice="Add workers or slots, or make the job faster. It may wait for something "
                "that is slow.",
                job_type=name,
            )
    if one.unread:
        they, them = ("It waits", "it") if one.unread == 1 else ("They wait", "them")
        yield Problem(
            kind="unread",
            level=Level.WARNING,
            sentence=f"{jobs(one.unread)} of {name} cannot be read by the workers that met {them}. "
            f"{they} for a worker that can.",
            advice="`howdah why ID` names the field. Start the newer workers, or cancel what was "
            "enqueued by mistake.",
            job_type=name,
        )
    bad = (one.failure_rate or 0.0) * _attempts(one)
    if one.failure_rate is not None and one.failure_rate >= FAILING and bad >= ENOUGH:
        yield Problem(
            kind="failing",
            level=Level.CRITICAL if one.failure_rate >= FAILING_BADLY else Level.WARNING,
            sentence=f"{one.failure_rate:.0%} of the attempts of {name} failed "
            "in the last five minutes.",
            advice="Look at its failures. Often one error causes most of them.",
            job_type=name,
        )


def _attempts(one: TypeNow) -> int:
    return one.run.jobs


def _drain(one: TypeNow) -> str:
    at_least = "more than " if one.waiting.more else ""
    return f"{at_least}{length(timedelta(seconds=one.waiting.jobs / one.per_second))} of work"
