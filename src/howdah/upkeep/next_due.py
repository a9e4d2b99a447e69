"""Next due: when the next waiting job is due, as far as this worker was told.

Three can tell. A producer says that a job waits, not until when: then somebody has to look. Another
worker that looked says when the next one is due; it will see to that itself, so the others come
a moment later, in case it is gone. And what this worker found out by its own look.
"""

from __future__ import annotations

import random

import msgspec

SPREAD = 0.03  # seconds over which idle workers spread a look that a producer asked for
SURE = 0.01  # seconds: an answer that comes sooner may be older than the question
LATER = (0.01, 0.03)  # seconds that a worker gives to the one that promoted last
A_DAY = 86400.0

_announcement = msgspec.json.Decoder(tuple[float | None, str])


class NextDue:
    """When to look for jobs that are due; `now` is always the monotonic clock's."""

    def __init__(self, worker_id: str) -> None:
        self._worker_id = worker_id
        self._at: float | None = None
        self._asked: float | None = None  # when a producer said that a job waits
        self._look: float = 0.0  # when to look because of that

    @property
    def at(self) -> float | None:
        """When to look next; None: nothing is known to wait."""
        if self._asked is None:
            return self._at
        return self._look if self._at is None else min(self._at, self._look)

    def heard(self, message: str, now: float) -> None:
        """Take what was said on the channel; what cannot be read is a hint to look."""
        try:
            milliseconds, worker_id = _announcement.decode(message)
        except (msgspec.MsgspecError, ValueError, OverflowError):
            self.ask(now)
            return
        if worker_id == self._worker_id:
            return
        wait = None if milliseconds is None else milliseconds / 1000
        self._learn(wait, now, random.uniform(*LATER))  # noqa: S311 - spreads the workers, no more
        if self._asked is not None and now >= self._asked + SURE:
            self._asked = None

    def ask(self, now: float) -> None:
        """A job waits, nobody knows until when."""
        if self._asked is None:
            self._asked = now
            self._look = now + random.uniform(0, SPREAD)  # noqa: S311

    def looking(self) -> None:
        """Forget what is known: what is heard from now on may be news."""
        self._at = self._asked = None

    def found(self, wait: float | None, now: float) -> None:
        """Take the answer of an own look."""
        self._learn(wait, now, 0.0)

    def busy(self, now: float) -> None:
        """Another worker was just looking: it tells us, or we look again."""
        self._learn(LATER[1], now, random.uniform(*LATER))  # noqa: S311

    def _learn(self, wait: float | None, now: float, later: float) -> None:
        self._at = None if wait is None else now + min(max(wait, 0.0), A_DAY) + later
