"""Facts: what the processes said and what the database says, side by side.

Comes after   history.py and trail.py
Comes before  checker.py and order.py, which ask what must hold
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tests.stories.history import History
from tests.stories.trail import Move, Trail

HELD = frozenset({"claimed", "running"})
FINISHED = frozenset({"completed", "failed", "cancelled"})


@dataclass(frozen=True)
class Facts:
    """Everything that is known of a story."""

    history: History
    trail: Trail
    lease: float  # seconds a worker may be silent before it is given up

    @cached_property
    def moves(self) -> list[Move]:
        return [move for moves in self.trail.moves.values() for move in moves]

    @cached_property
    def endings(self) -> list[Move]:
        """The moves that ended an attempt, for good or to try again."""
        return [move for move in self.moves if _ends_attempt(move)]

    @cached_property
    def taken(self) -> list[Move]:
        """The endings made by somebody else: who held the lease had not reported one before."""
        said: dict[tuple[str, str | None, int], float] = {}
        for run in self.history.runs:
            if run.ended is not None and run.how in ("returned", "raised"):
                said[run.job, run.worker, run.attempt] = run.ended
        for settled in self.history.settled:
            said.setdefault((settled.job, settled.worker, settled.attempt), settled.asked)
        return [
            move
            for move in self.endings
            if move.now is not None
            and move.now.status in ("pending", "failed", "cancelled")
            and not said.get(move.lease, float("inf")) <= move.at
        ]


def _ends_attempt(move: Move) -> bool:
    was, now = move.was, move.now
    if was is None or now is None or was.status not in HELD or now.status in HELD:
        return False
    return now.status in FINISHED or now.attempts == was.attempts
