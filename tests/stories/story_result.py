"""Story result: the records of the processes and of the database, for comparison.

Comes after   history.py and move_log.py
Comes before  checker.py and order.py, which check what must hold
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tests.stories.admit.at_work import AtWork, at_work
from tests.stories.history import History
from tests.stories.move_log import FINISHED, HELD, Move, MoveLog


@dataclass(frozen=True)
class StoryResult:
    """Everything that is known about a story."""

    history: History
    move_log: MoveLog
    lease: float  # seconds that a worker may be silent before it is given up

    @cached_property
    def moves(self) -> list[Move]:
        return [move for moves in self.move_log.moves.values() for move in moves]

    @cached_property
    def endings(self) -> list[Move]:
        """The moves that ended an attempt, finally or for another attempt."""
        return [move for move in self.moves if _ends_attempt(move)]

    @cached_property
    def at_work(self) -> list[AtWork]:
        """The attempts that handlers ran, as long as they had their lease."""
        return at_work(self.history, self.move_log)

    @cached_property
    def taken(self) -> list[Move]:
        """The endings that another process made, before the holder of the lease reported one."""
        reported: dict[tuple[str, str | None, int], float] = {}
        for run in self.history.runs:
            if run.ended is not None and run.how in ("returned", "raised"):
                reported[run.job, run.worker, run.attempt] = run.ended
        for settled in self.history.settled:
            reported.setdefault((settled.job, settled.worker, settled.attempt), settled.called_at)
        return [
            move
            for move in self.endings
            if move.after is not None
            and move.after.status in ("pending", "failed", "cancelled")
            and not reported.get(move.lease, float("inf")) <= move.at
        ]


def _ends_attempt(move: Move) -> bool:
    before, after = move.before, move.after
    if before is None or after is None or before.status not in HELD or after.status in HELD:
        return False
    return after.status in FINISHED or after.attempts == before.attempts
