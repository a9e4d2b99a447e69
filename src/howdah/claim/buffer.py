"""Buffer: claimed jobs that have not started, few and never for long.

Fast jobs need some held ready, or every slot would wait for a round trip; slow ones none. So
the buffer is sized by what ended in the last moments, and what is held for longer than `HOLD`
is handed back: it must not keep a newer, more urgent job or an idle worker waiting.
"""

from __future__ import annotations

from collections import deque
from uuid import UUID

from howdah.job import Claim

HOLD = 0.08  # seconds a claimed job may wait here
LONGEST_HOLD = 0.5  # the same where claims take long themselves: others would not have it sooner
AHEAD = 0.03  # seconds of work to hold ready, beside what goes by while a claim is on its way


class Buffer:
    """Claimed jobs in claim order, and how many of them are worth having."""

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self._claims: deque[Claim] = deque()
        self._puts: deque[tuple[float, int]] = deque()  # when jobs came, and how many had by then
        self._came = 0
        self._ended = 0
        self._rate = 0.0
        self._rated_at = 0.0
        self._took = 0.0
        self._hold = HOLD
        self.ahead: int = 0  # how many jobs to hold ready
        self._worth = 1

    def __len__(self) -> int:
        return len(self._claims)

    @property
    def first(self) -> tuple[int, float, UUID]:
        """How urgent the first one is: the lowest comes before all others."""
        return _order(self._claims[0])

    def held(self) -> list[tuple[UUID, int]]:
        return [(claim.id, claim.attempt) for claim in self._claims]

    def wanted(self, free: int) -> int:
        """How many jobs to claim now with so many free slots; 0 where it is not worth a call."""
        want = free + self.ahead - len(self._claims)
        if want < (self._worth if self._claims else 1):
            return 0
        return min(want, self._batch_size)

    def put(self, claims: list[Claim], now: float) -> None:
        """Take claims in, highest priority first even when they come from two calls."""
        self._came += len(claims)
        self._puts.append((now, self._came))
        if not self._claims or not claims or _order(self._claims[-1]) <= _order(claims[0]):
            self._claims.extend(claims)
        else:
            self._claims = deque(sorted([*self._claims, *claims], key=_order))

    def get(self, jobs: int) -> list[Claim]:
        """Take up to so many out, the first ones first."""
        take = self._claims.popleft
        return [take() for _ in range(min(jobs, len(self._claims)))]

    def ended(self, now: float) -> None:
        """Count a job that ended, for the rate."""
        self._ended += 1
        if (passed := now - self._rated_at) >= 0.02:
            latest = self._ended / passed
            self._expect(latest if latest < self._rate / 4 else (self._rate + latest) / 2)
            self._ended, self._rated_at = 0, now

    def claimed(self, took: float) -> None:
        """Learn how long a claim takes: so long the slots must be kept busy."""
        self._took += (took - self._took) / 4
        self._hold = min(max(HOLD, 4 * self._took), LONGEST_HOLD)

    def _expect(self, rate: float) -> None:
        """Set how many jobs to hold ready at this rate, and how many make a claim worth it."""
        self._rate = rate
        seconds = min(AHEAD + 3 * self._took, self._hold * 0.75)
        self.ahead = min(int(rate * seconds), 3 * self._batch_size)
        self._worth = max(1, self.ahead // 2)

    def held_too_long(self, now: float) -> list[Claim]:
        """Empty the buffer when its jobs have waited long enough, and expect less."""
        left = self._came - len(self._claims)
        while self._puts and self._puts[0][1] <= left:
            self._puts.popleft()
        if not self._claims or now - self._puts[0][0] < self._hold:
            return []
        self._expect(self._rate / 4)
        return self.empty()

    def empty(self) -> list[Claim]:
        claims = list(self._claims)
        self._claims.clear()
        return claims


def _order(claim: Claim) -> tuple[int, float, UUID]:
    return (~claim.priority, claim.ready_at, claim.id)
