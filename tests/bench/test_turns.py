"""Peers are measured equally often, and none is always first."""

from __future__ import annotations

from collections import Counter

from bench.compare import parse, round_robin
from bench.peers.registry import PEERS

ALL_PEERS = list(PEERS.values())


def test_every_peer_has_a_turn_before_one_has_two() -> None:
    order = [peer.name for peer in round_robin(ALL_PEERS, 1, 3)]
    rounds = [order[at : at + len(ALL_PEERS)] for at in range(0, len(order), len(ALL_PEERS))]
    assert [set(names) for names in rounds] == [set(PEERS)] * 3
    assert Counter(order) == dict.fromkeys(PEERS, 3)


def test_another_peer_is_first_each_time() -> None:
    begins = [next(round_robin(ALL_PEERS, repetition, 1)).name for repetition in (1, 2, 3)]
    begins_within = [
        list(round_robin(ALL_PEERS, 1, 3))[at * len(ALL_PEERS)].name for at in range(3)
    ]
    assert begins == begins_within == list(PEERS)[:3]


def test_short_workloads_have_three_turns_unless_it_is_quick() -> None:
    workloads = ("enqueue_bulk", "enqueue_single", "drain_1", "drain_2", "drain_16", "pickup")
    assert [parse([]).turns(workload) for workload in workloads] == [1, 3, 3, 1, 3, 3]
    assert [parse(["--quick"]).turns(workload) for workload in workloads] == [1] * 6
