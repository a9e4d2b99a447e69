"""Peers take turns, none is always first, and what is compared is measured close together."""

from __future__ import annotations

from collections import Counter

from bench.compare import parse
from bench.peer import Peer
from bench.peers.registry import PEERS
from bench.turns import BLOCKS, MANY, Step, rotated, steps
from bench.workloads import WORKLOADS

ALL_PEERS = list(PEERS.values())


def peers_of(workload: str, turns: int) -> list[tuple[int, str]]:
    return [(step.turn, step.peer.name) for step in steps(ALL_PEERS, [workload], turns)]


def in_every_turn(peer: Peer, workload: str) -> bool:
    return workload in peer.workloads and peer.workloads[workload].every == 1


def test_every_workload_has_its_turns() -> None:
    in_blocks = [workload for block in BLOCKS for workload in block.workloads]
    assert Counter(in_blocks) == dict.fromkeys(WORKLOADS, 1)


def test_every_peer_has_a_turn_before_one_has_two() -> None:
    expected = {peer.name for peer in ALL_PEERS if in_every_turn(peer, "drain_1")}
    measured = peers_of("drain_1", 3)
    for turn in (1, 2, 3):
        names = [name for number, name in measured if number == turn]
        assert set(names) >= expected
        assert max(Counter(names).values()) == 1


def test_another_peer_is_first_each_time() -> None:
    assert [rotated(ALL_PEERS, turn)[0].name for turn in (1, 2, 3)] == list(PEERS)[:3]
    after_the_last = len(ALL_PEERS) + 1
    assert rotated(ALL_PEERS, after_the_last) == rotated(ALL_PEERS, 1)


def test_a_slow_peer_is_measured_in_every_third_turn() -> None:
    slow = next(peer for peer in ALL_PEERS if peer.workloads["drain_1"].every == 3)
    turns = [turn for turn, name in peers_of("drain_1", MANY) if name == slow.name]
    assert turns == [1, 4, 7]


def test_howdahs_own_drains_follow_each_other() -> None:
    measured = [
        step.workload for step in steps(ALL_PEERS, WORKLOADS, 1) if step.peer.name == "howdah"
    ]
    at = measured.index("drain_16")
    assert set(measured[at : at + 4]) == {"drain_16", "floor", "drain_2", "drain_1"}


def test_the_turns_of_all_workloads_alternate() -> None:
    order = [step.turn for step in steps(ALL_PEERS, WORKLOADS)]
    assert order == sorted(order)
    last = Step(MANY, PEERS["howdah"], "pickup")
    assert last in list(steps(ALL_PEERS, WORKLOADS))


def test_a_quick_run_has_one_turn_of_everything() -> None:
    options = parse(["--quick"])
    made = list(steps(options.peers, options.workloads, options.turns))
    assert {step.turn for step in made} == {1}
    assert {step.workload for step in made} == set(WORKLOADS)
