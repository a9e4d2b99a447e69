"""Buffer: claimed jobs that have not started, few and never for long.

Fast jobs need some in the buffer, or every slot would wait for a round trip. Slow jobs need none.
So the size of the buffer follows the rate at which jobs ended in the last moments. Jobs that wait
longer than `HOLD` are released: they must not delay a newer, more urgent job, and another worker
may be idle.
"""

from __future__ import annotations

from collections import deque
from uuid import UUID

from howdah.job import Claim

HOLD = 0.08  # seconds that a claimed job may wait here
LONGEST_HOLD = 0.5  # the same where claims are slow: another worker would not start it sooner
AHEAD = 0.03  # seconds of work to keep ready, beside what ends during a claim


class Buffer:
    """Claimed jobs in claim order, and how many of them are worth having."""

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self._claims: deque[Claim] = deque()
        self._puts: deque[tuple[float, int]] = (
            deque()
        )  # when jobs came, and how many came until then
        self._came = 0
        self._ended = 0  # how many jobs had ended when the rate was last computed
        self._rate = 0.0
        self._rated_at = 0.0
        self._took = 0.0
        self._hold = HOLD
        self.ahead: int = 0  # how many jobs to keep ready
        self._worth = 1

    def __len__(self) -> int:
        return len(self._claims)

    @property
    def first(self) -> tuple[int, float, UUID]:
        """How urgent the first job is: the lowest value is the most urgent."""
        return _order(self._claims[0])

    def leases(self) -> list[tuple[UUID, int]]:
        return [(claim.id, claim.attempt) for claim in self._claims]

    def wanted(self, free: int) -> int:
        """How many jobs to claim now with `free` slots; 0 if a call is not worth it."""
        want = free + self.ahead - len(self._claims)
        if want < (self._worth if self._claims else 1):
            return 0
        return min(want, self._batch_size)

    def put(self, claims: list[Claim], now: float) -> None:
        """Add claims; highest priority first, also when they come from two calls."""
        self._came += len(claims)
        self._puts.append((now, self._came))
        if not self._claims or not claims or _order(self._claims[-1]) <= _order(claims[0]):
            self._claims.extend(claims)
        else:
            self._claims = deque(sorted([*self._claims, *claims], key=_order))

    def get(self, jobs: int) -> list[Claim]:
        """Take out up to `jobs` claims, the first ones first."""
        take = self._claims.popleft
        return [take() for _ in range(min(jobs, len(self._claims)))]

    def set_ended(self, ended: int, now: float) -> None:
        """Learn the rate from how many jobs have ended so far."""
        if ended > self._ended and (passed := now - self._rated_at) >= 0.02:
            latest = (ended - self._ended) / passed
            self._expect(latest if latest < self._rate / 4 else (self._rate + latest) / 2)
            self._ended, self._rated_at = ended, now

    def claimed(self, took: float) -> None:
        """Learn how long a claim takes: the buffer must keep the slots busy for so long."""
        self._took += (took - self._took) / 4
        self._hold = min(max(HOLD, 4 * self._took), LONGEST_HOLD)

    def _expect(self, rate: float) -> None:
        """Set how many jobs to keep ready at this rate, and how many make a claim worth a call."""
        self._rate = rate
        seconds = min(AHEAD + 3 * self._took, self._hold * 0.75)
        self.ahead = min(int(rate * seconds), 3 * self._batch_size)
        self._worth = max(1, self.ahead // 2)

    def held_too_long(self, now: float) -> list[Claim]:
        """Empty the buffer if its first job has waited too long, and keep fewer from now on."""
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
