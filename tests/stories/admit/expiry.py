"""Expiry: no attempt begins after a job's expires_at, by the clock of the database."""

from __future__ import annotations

from collections.abc import Iterator

from tests.stories.story_result import StoryResult


def no_attempt_begins_after_its_job_expired(result: StoryResult) -> Iterator[str]:
    for move in result.moves:
        claimed = move.after is not None and move.after.status == "claimed"
        if claimed and move.expires_at is not None and move.began > move.expires_at:
            late = move.began - move.expires_at
            yield f"job {move.job} was claimed {late:.3f} s after it had expired"
