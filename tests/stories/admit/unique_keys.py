"""Unique keys: no two jobs of a type have the same unique key at the same time.

A job has its key from its enqueue until it has ended, or until its first attempt began
(`unique_until='started'`), or until it expired before that. The next job with the key waits for the
commit of what freed it, so the times of both statements can be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from tests.stories.history import EXISTED
from tests.stories.move_log import FINISHED, Move
from tests.stories.story_result import StoryResult
from tests.support.admission import Span


def a_unique_key_has_one_live_job(result: StoryResult) -> Iterator[str]:
    by_key: dict[tuple[str, str], list[Span[str]]] = defaultdict(list)
    for id, job in result.move_log.jobs.items():
        if job["unique_key"] is not None:
            moves = result.move_log.moves[id]
            freed = _freed_at(moves, until_started=job["unique_until"] == "started")
            by_key[job["job_type"], job["unique_key"]].append(Span(moves[0].at, freed, id))
    for (job_type, key), jobs in by_key.items():
        for first, second in pairwise(sorted(jobs)):
            if second.began < first.ended:
                yield f"jobs {first.job} and {second.job} of {job_type} had the key {key} at once"


def an_enqueue_that_met_its_job_adds_none(result: StoryResult) -> Iterator[str]:
    for enqueued in result.history.enqueued:
        if enqueued.how != EXISTED:
            continue
        added = result.move_log.tokens.get(enqueued.token, [])
        if added:
            yield f"{enqueued.token} was told that {enqueued.holder} exists, and became {added}"
        elif enqueued.holder not in result.move_log.jobs:
            yield f"{enqueued.token} was told that {enqueued.holder} exists, and it does not"


def _freed_at(moves: list[Move], *, until_started: bool) -> float:
    for move in moves:
        status = None if move.after is None else move.after.status
        if status is None or status in FINISHED or (until_started and status == "claimed"):
            expires_at = move.expires_at
            if expires_at is not None and move.after is not None and move.after.attempts == 0:
                return min(move.at, expires_at)
            return move.at
    return float("inf")
