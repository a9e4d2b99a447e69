"""Next due: when this worker should promote jobs, as far as it knows.

It learns this in three ways. A producer reports that a job is scheduled, but not when: then a
worker has to check. A worker that checked reports when the next job is due. That worker promotes
it, so the others check a moment later, in case it is gone. This worker's own check is exact.
"""

from __future__ import annotations

import random

import msgspec

SPREAD = 0.03  # seconds over which idle workers spread the check that a producer asked for
ANSWER_DELAY = 0.01  # seconds: a report that comes sooner may be older than the producer's
HEAD_START = (0.01, 0.03)  # seconds that other workers give to the one that checked last
A_DAY = 86400.0

_report = msgspec.json.Decoder(tuple[float | None, str])


class NextDue:
    """When to check for due jobs; `now` is always the monotonic clock."""

    def __init__(self, worker_id: str) -> None:
        self._worker_id = worker_id
        self._at: float | None = None
        self._asked_at: float | None = None  # when a producer reported a scheduled job
        self._check_at: float = 0.0  # when to check because of that

    @property
    def at(self) -> float | None:
        """When to check next; None: no scheduled job is known."""
        if self._asked_at is None:
            return self._at
        return self._check_at if self._at is None else min(self._at, self._check_at)

    def received(self, message: str, now: float) -> None:
        """Take a message of the channel; one that cannot be read counts as a producer's."""
        try:
            milliseconds, worker_id = _report.decode(message)
        except (msgspec.MsgspecError, ValueError, OverflowError):
            self._ask(now)
            return
        if worker_id == self._worker_id:
            return
        wait = None if milliseconds is None else milliseconds / 1000
        self._set(wait, now, random.uniform(*HEAD_START))  # noqa: S311 - only spreads the workers
        if self._asked_at is not None and now >= self._asked_at + ANSWER_DELAY:
            self._asked_at = None

    def begin_check(self) -> None:
        """Forget everything, because the check reads it; messages from now on count."""
        self._at = self._asked_at = None

    def checked(self, wait: float | None, now: float) -> None:
        """Take the result of this worker's own check: seconds until the next job is due."""
        self._set(wait, now, 0.0)

    def other_is_checking(self, now: float) -> None:
        """Check again soon, unless the other worker's report comes first."""
        self._set(HEAD_START[1], now, random.uniform(*HEAD_START))  # noqa: S311

    def _ask(self, now: float) -> None:
        if self._asked_at is None:
            self._asked_at = now
            self._check_at = now + random.uniform(0, SPREAD)  # noqa: S311

    def _set(self, wait: float | None, now: float, head_start: float) -> None:
        self._at = None if wait is None else now + min(max(wait, 0.0), A_DAY) + head_start
