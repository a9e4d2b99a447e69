"""Turns: in which order peers and workloads are measured, and how often.

Comes before  compare.py, which measures in this order

A turn of a block measures every peer once, one after another, and another peer is first in each
turn. A peer measures all workloads of a block before the next peer begins: then results that are
compared are measured within seconds of each other. The registry lists the peers that are compared
most beside howdah. Turns of all blocks alternate, so each workload is measured over the whole run.

A peer that is far too slow to be the best of any target is measured in every third turn only
(`Plan.every`), to keep the run short.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.peer import Peer


@dataclass(frozen=True, slots=True)
class Block:
    """Workloads that are measured together, and the number of turns."""

    workloads: tuple[str, ...]
    turns: int


MANY, FEW = 9, 3
BLOCKS = (
    Block(("enqueue_bulk",), MANY),
    Block(("enqueue_single",), MANY),
    Block(("drain_16", "floor", "drain_2", "drain_1"), MANY),
    Block(("drain_after_load",), FEW),
    Block(("threads",), MANY),
    Block(("processes",), MANY),
    Block(("drain_sleep",), FEW),
    Block(("pickup",), MANY),
)


class Step(NamedTuple):
    """One measurement to be made."""

    turn: int
    peer: Peer
    workload: str


def steps(
    peers: Sequence[Peer], workloads: Iterable[str], turns: int | None = None
) -> Generator[Step]:
    """Yield every measurement of a run; `turns` replaces the number of turns of each block."""
    wanted = set(workloads)
    for turn in range(1, (turns or MANY) + 1):
        for block in BLOCKS:
            if turn <= (turns or block.turns):
                for peer in rotated(peers, turn):
                    for workload in block.workloads:
                        if workload in wanted and _has_turn(peer, workload, turn):
                            yield Step(turn, peer, workload)


def rotated(peers: Sequence[Peer], turn: int) -> Sequence[Peer]:
    """Return the peers in the order of this turn: another one is first in each turn."""
    first = (turn - 1) % len(peers)
    return (*peers[first:], *peers[:first])


def _has_turn(peer: Peer, workload: str, turn: int) -> bool:
    plan = peer.workloads.get(workload)
    return plan is not None and (turn - 1) % plan.every == 0
