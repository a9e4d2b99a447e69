"""At work: the attempts that handlers ran, as long as they had their lease.

A handler may go on after its lease was lost: its worker was stopped for too long or cut off, the
job was cancelled, or its thread was abandoned. Then the next job may begin, as the documentation
says. So an attempt is at work until its handler or its lease ended, whichever came first. One whose
claim a crash of the server took back never had a lease, and is left out.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from tests.stories.history import History, Run
from tests.stories.move_log import HELD, Move, MoveLog


@dataclass(frozen=True)
class AtWork:
    """One attempt that a handler ran while it had the lease."""

    run: Run
    claim: Move
    key: str | None
    ended: float

    @property
    def job_type(self) -> str:
        return self.claim.job_type

    @property
    def began(self) -> float:
        return self.run.began


@dataclass(frozen=True)
class _Lease:
    claim: Move
    ended: float


def at_work(history: History, move_log: MoveLog) -> list[AtWork]:
    leases: dict[tuple[str, str | None, int], list[_Lease]] = defaultdict(list)
    for moves in move_log.moves.values():
        _add_leases(leases, moves)
    found: list[AtWork] = []
    for run in history.runs:
        for lease in reversed(leases[run.job, run.worker, run.attempt]):
            if lease.claim.at <= run.began:
                ended = min(lease.ended, float("inf") if run.ended is None else run.ended)
                if run.began < ended:
                    key = move_log.jobs[run.job]["key"]
                    found.append(AtWork(run, lease.claim, key, ended))
                break
    return found


def _add_leases(leases: dict[tuple[str, str | None, int], list[_Lease]], moves: list[Move]) -> None:
    claim: Move | None = None
    for move in moves:
        held_before = move.before is not None and move.before.status in HELD
        held_after = move.after is not None and move.after.status in HELD
        if claim is not None and held_before and not held_after:
            leases[move.lease].append(_Lease(claim, move.at))
            claim = None
        elif held_after and not held_before:
            claim = move
    if claim is not None and claim.after is not None:
        lease = claim.job, claim.after.worker, claim.after.attempts
        leases[lease].append(_Lease(claim, float("inf")))
