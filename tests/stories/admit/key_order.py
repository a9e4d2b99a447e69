"""Key order: jobs of an ordered key run one after the other, in the order of enqueueing.

One job was enqueued before another if its enqueue was acknowledged before that of the other began,
whichever processes enqueued them, or if it was before it in the same call. Attempts of one job
count as one turn: a retry keeps the place in the order. A job with a `run_at` takes its place
when it is due.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from tests.stories.admit.at_work import AtWork
from tests.stories.admit.log import FOREVER
from tests.stories.history import OK, Enqueued
from tests.stories.story_result import StoryResult
from tests.support.admission import Span, Turn, overtaken, together

Work = dict[tuple[str, str], list[AtWork]]  # by job type and key


def jobs_of_an_ordered_key_run_one_after_the_other(result: StoryResult) -> Iterator[str]:
    for (job_type, key), work in _ordered(result).items():
        for spans in together(Span(each.began, each.ended, each.run) for each in work):
            if len(spans) > 1:
                first, *_, last = spans
                yield f"{last.job.job} of {job_type} {key} began while {first.job.job} ran"
                break


def jobs_of_an_ordered_key_run_in_the_order_of_enqueueing(result: StoryResult) -> Iterator[str]:
    enqueued = {
        job: each
        for each in result.history.enqueued
        for job in result.move_log.tokens.get(each.token, [])
    }
    for (job_type, key), work in _ordered(result).items():
        turns = [
            _turn(job, enqueued[job], result, attempts)
            for job, attempts in _by_job(work).items()
            if job in enqueued
        ]
        for first, second in [*overtaken(turns), *_overtaken_in_a_call(turns, enqueued)]:
            yield (
                f"{second.job} of {job_type} {key} began before {first.job} had ended, "
                "which was enqueued first"
            )
            break


def _ordered(result: StoryResult) -> Work:
    ordered = result.move_log.admission.ordered
    by_key: Work = defaultdict(list)
    for work in result.at_work:
        if work.key is not None and work.job_type in ordered:
            by_key[work.job_type, work.key].append(work)
    return by_key


def _by_job(work: list[AtWork]) -> dict[str, list[AtWork]]:
    by_job: dict[str, list[AtWork]] = defaultdict(list)
    for each in work:
        by_job[each.run.job].append(each)
    return by_job


def _turn(job: str, enqueued: Enqueued, result: StoryResult, attempts: list[AtWork]) -> Turn[str]:
    waits = not result.move_log.moves[job][0].at_once
    return Turn(
        asked=enqueued.asked,
        answered=FOREVER if waits or enqueued.how != OK else enqueued.answered,
        began=min(attempt.began for attempt in attempts),
        ended=max(attempt.ended for attempt in attempts),
        job=job,
    )


def _overtaken_in_a_call(
    turns: list[Turn[str]], enqueued: dict[str, Enqueued]
) -> Iterator[tuple[Turn[str], Turn[str]]]:
    calls: dict[tuple[int, float], list[Turn[str]]] = defaultdict(list)
    for turn in turns:
        nth = enqueued[turn.job].nth
        calls[enqueued[turn.job].pid, turn.asked].append(turn._replace(asked=nth, answered=nth))
    for call in calls.values():
        yield from overtaken(call)
