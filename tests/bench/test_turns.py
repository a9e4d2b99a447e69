"""Who is measured when: everybody equally often, and nobody always first."""

from __future__ import annotations

from collections import Counter

from bench.compare import in_turns, parse
from bench.peers.roster import ROSTER

PEERS = list(ROSTER.values())


def test_everybody_has_a_turn_before_anybody_has_two() -> None:
    order = [peer.name for peer in in_turns(PEERS, 1, 3)]
    rounds = [order[at : at + len(PEERS)] for at in range(0, len(order), len(PEERS))]
    assert [set(names) for names in rounds] == [set(ROSTER)] * 3
    assert Counter(order) == dict.fromkeys(ROSTER, 3)


def test_another_one_begins_each_time() -> None:
    begins = [next(in_turns(PEERS, repetition, 1)).name for repetition in (1, 2, 3)]
    begins_within = [list(in_turns(PEERS, 1, 3))[at * len(PEERS)].name for at in range(3)]
    assert begins == begins_within == list(ROSTER)[:3]


def test_what_is_compared_most_has_three_turns_unless_it_is_quick() -> None:
    works = ("enqueue_bulk", "enqueue_single", "drain_1", "drain_2", "drain_16", "pickup")
    assert [parse([]).turns(work) for work in works] == [1, 3, 3, 1, 3, 3]
    assert [parse(["--quick"]).turns(work) for work in works] == [1] * 6
