"""Only the results of a run decide whether a target was reached, and the nearer end counts."""

from __future__ import annotations

import pytest

from bench.aggregate import results
from bench.record import Measurement
from bench.targets import TARGETS, Target
from tests.bench.sample_record import costs, pickups, rates

TURNS = 6


def target(title: str) -> Target:
    (target,) = [target for target in TARGETS if target.title == title]
    return target


def verdict(title: str, *measurements: Measurement) -> tuple[float, bool | None] | None:
    measured = target(title).measured(results(measurements))
    if measured is None:
        return None
    return round(measured.median, 9), target(title).reached(measured)


def steady(peer: str, workload: str, rate: float) -> list[Measurement]:
    return rates(peer, workload, *[rate] * TURNS)


def waits(peer: str, ms: float) -> list[Measurement]:
    return pickups(peer, *[[ms]] * TURNS)


def test_a_rate_must_be_at_least_so_many_times_the_peers() -> None:
    title, peer = "drain, to Graphile Worker", steady("graphile_worker", "drain_1", 100)
    assert verdict(title, *peer, *steady("howdah", "drain_1", 150)) == (1.5, True)
    assert verdict(title, *peer, *steady("howdah", "drain_1", 149)) == (1.49, False)


def test_a_time_must_be_at_most_so_much_of_the_peers() -> None:
    title, peer = "pickup p50, to the best Postgres peer", waits("pgqueuer", 2.0)
    assert verdict(title, *peer, *waits("howdah", 0.8)) == (0.4, True)
    assert verdict(title, *peer, *waits("howdah", 0.9)) == (0.45, False)


def test_a_millisecond_is_not_below_a_millisecond() -> None:
    assert verdict("pickup p50", *waits("howdah", 1.0)) == (1.0, False)
    assert verdict("pickup p50", *waits("howdah", 0.9)) == (0.9, True)


def test_the_nearer_end_of_the_interval_decides() -> None:
    title, peer = "drain, to Graphile Worker", rates("graphile_worker", "drain_1", *[100] * 9)
    scattered = rates("howdah", "drain_1", 140, 145, 150, 155, 160, 165, 170, 175, 180)
    assert verdict(title, *peer, *scattered) == (1.6, False)
    close = rates("howdah", "drain_1", 140, 151, 152, 155, 160, 165, 170, 175, 180)
    assert verdict(title, *peer, *close) == (1.6, True)


def test_too_few_turns_decide_nothing() -> None:
    peer, ours = rates("graphile_worker", "drain_1", 100), rates("howdah", "drain_1", 900)
    assert verdict("drain, to Graphile Worker", *peer, *ours) == (9.0, None)


def test_a_ratio_is_taken_within_a_turn() -> None:
    """The machine was ten times as fast in some turns, for both."""
    speeds = [1, 10, 1, 10, 1, 10]
    ours = rates("howdah", "drain_1", *(200 * speed for speed in speeds))
    theirs = rates("graphile_worker", "drain_1", *(100 * speed for speed in speeds))
    assert verdict("drain, to Graphile Worker", *ours, *theirs) == (2.0, True)


def test_the_best_peer_is_the_one_with_the_highest_rate_or_the_shortest_time() -> None:
    enqueued = [
        *steady("howdah", "enqueue_bulk", 300),
        *steady("arq", "enqueue_bulk", 50),
        *steady("pg_boss", "enqueue_bulk", 100),
    ]
    assert verdict("bulk enqueue, to the best peer", *enqueued) == (3.0, True)
    waited = [*waits("howdah", 2.0), *waits("arq", 4.0), *waits("celery", 1.0)]
    assert verdict("pickup p50, to the best Redis peer", *waited) == (2.0, False)


def test_howdah_is_never_its_own_peer() -> None:
    assert verdict("bulk enqueue, to the best peer", *steady("howdah", "enqueue_bulk", 300)) is None


def test_the_best_peer_is_looked_for_only_among_those_the_target_names() -> None:
    several = [
        *steady("howdah", "enqueue_single", 150),
        *steady("dramatiq", "enqueue_single", 1000),  # Redis: acknowledged before it is on disk
        *steady("pg_boss", "enqueue_single", 1000),  # Node
        *steady("pgqueuer", "enqueue_single", 100),
    ]
    title = "single enqueue, to the best Python peer that commits"
    assert verdict(title, *several) == (1.5, True)


BOTH = "drain, the better of one and two processes each, to Graphile Worker"
CPU_OF_BOTH = "CPU time per job in that drain, to Graphile Worker"


def test_each_side_takes_the_number_of_processes_that_is_better_for_it() -> None:
    measured = [
        *costs("howdah", "drain_1", *[(20, 10, 900)] * TURNS, rate=300),
        *costs("howdah", "drain_2", *[(25, 15, 900)] * TURNS, rate=200),
        *costs("graphile_worker", "drain_1", *[(10, 10, 600)] * TURNS, rate=100),
        *costs("graphile_worker", "drain_2", *[(30, 30, 600)] * TURNS, rate=150),
    ]
    assert verdict(BOTH, *measured) == (2.0, True)
    assert verdict(CPU_OF_BOTH, *measured) == (0.5, True)


@pytest.mark.parametrize(
    ("title", "good", "bad"),
    [
        ("server CPU per drained job", (14, 99, 999), (14.1, 1, 1)),
        ("worker CPU per drained job", (99, 8, 999), (1, 8.1, 1)),
        ("WAL per drained job", (99, 99, 700), (1, 1, 701)),
    ],
)
def test_a_cost_must_be_at_most_so_much(
    title: str, good: tuple[float, float, float], bad: tuple[float, float, float]
) -> None:
    for cost, reached in ((good, True), (bad, False)):
        shown = verdict(title, *costs("howdah", "drain_1", *[cost] * TURNS))
        assert shown is not None
        assert shown[1] is reached


def test_a_target_without_a_measurement_is_not_decided() -> None:
    assert verdict("drain, to PgQueuer") is None
