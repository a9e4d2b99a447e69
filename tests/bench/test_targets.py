"""Only the results of a run decide whether a target was reached."""

from __future__ import annotations

from bench.aggregate import aggregate
from bench.record import Measurement
from bench.targets import TARGETS, Target
from tests.bench.sample_record import pickups, rates


def target(title: str) -> Target:
    (target,) = [target for target in TARGETS if target.title == title]
    return target


def verdict(title: str, *measurements: Measurement) -> tuple[float | None, bool]:
    aggregates = aggregate(measurements)
    return target(title).ratio(aggregates), target(title).reached(aggregates)


def test_a_rate_must_be_at_least_so_many_times_the_peers() -> None:
    title, peer = "drain, to Graphile Worker", rates("graphile_worker", "drain_1", 100)
    assert verdict(title, *peer, *rates("howdah", "drain_1", 130)) == (1.3, True)
    assert verdict(title, *peer, *rates("howdah", "drain_1", 129)) == (1.29, False)


def test_a_time_must_be_at_most_so_much_of_the_peers() -> None:
    title, peer = "pickup p50, to the best Postgres peer", pickups("pgqueuer", [2.0])
    assert verdict(title, *peer, *pickups("howdah", [1.0])) == (0.5, True)
    assert verdict(title, *peer, *pickups("howdah", [1.5])) == (0.75, False)


def test_a_millisecond_is_not_below_a_millisecond() -> None:
    assert verdict("pickup p50", *pickups("howdah", [1.0])) == (1.0, False)
    assert verdict("pickup p50", *pickups("howdah", [0.9])) == (0.9, True)


def test_the_best_peer_is_the_one_with_the_highest_rate_or_the_shortest_time() -> None:
    enqueued = [
        *rates("howdah", "enqueue_bulk", 300),
        *rates("arq", "enqueue_bulk", 50),
        *rates("pg_boss", "enqueue_bulk", 100),
    ]
    assert verdict("bulk enqueue, to the best peer", *enqueued) == (3.0, True)
    waited = [*pickups("howdah", [2.0]), *pickups("arq", [4.0]), *pickups("celery", [1.0])]
    assert verdict("pickup p50, to the best Redis peer", *waited) == (2.0, False)


def test_howdah_is_never_its_own_peer() -> None:
    howdah_only = rates("howdah", "enqueue_bulk", 300)
    assert verdict("bulk enqueue, to the best peer", *howdah_only) == (None, False)


def test_the_best_peer_is_looked_for_only_among_those_the_target_names() -> None:
    several = [
        *rates("howdah", "enqueue_single", 120),
        *rates("dramatiq", "enqueue_single", 1000),  # Redis: acknowledged before it is on disk
        *rates("pg_boss", "enqueue_single", 1000),  # Node
        *rates("pgqueuer", "enqueue_single", 100),
    ]
    title = "single enqueue, to the best Python peer that commits"
    assert verdict(title, *several) == (1.2, True)


def test_a_target_without_a_measurement_is_not_reached() -> None:
    assert verdict("drain, to PgQueuer") == (None, False)
