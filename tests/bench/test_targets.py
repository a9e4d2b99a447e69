"""Whether a target was reached follows from the figures of the run, and from nothing else."""

from __future__ import annotations

from bench.figures import figures
from bench.record import Measurement
from bench.targets import TARGETS, Target
from tests.bench.sample import pickups, rates


def target(title: str) -> Target:
    (found,) = [each for each in TARGETS if each.title == title]
    return found


def verdict(title: str, *measurements: Measurement) -> tuple[float | None, bool]:
    found = figures(measurements)
    return target(title).ratio(found), target(title).reached(found)


def test_a_rate_must_be_at_least_so_many_times_the_peers() -> None:
    title, theirs = "drain, to Graphile Worker", rates("graphile_worker", "drain_1", 100)
    assert verdict(title, *theirs, *rates("howdah", "drain_1", 130)) == (1.3, True)
    assert verdict(title, *theirs, *rates("howdah", "drain_1", 129)) == (1.29, False)


def test_a_time_must_be_at_most_so_much_of_the_peers() -> None:
    title, theirs = "pickup p50, to the best Postgres peer", pickups("pgqueuer", [2.0])
    assert verdict(title, *theirs, *pickups("howdah", [1.0])) == (0.5, True)
    assert verdict(title, *theirs, *pickups("howdah", [1.5])) == (0.75, False)


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
    alone = rates("howdah", "enqueue_bulk", 300)
    assert verdict("bulk enqueue, to the best peer", *alone) == (None, False)


def test_the_best_peer_is_looked_for_only_among_those_the_target_names() -> None:
    several = [
        *rates("howdah", "enqueue_single", 120),
        *rates("dramatiq", "enqueue_single", 1000),  # Redis: acknowledged before it is on disk
        *rates("pg_boss", "enqueue_single", 1000),  # Node
        *rates("pgqueuer", "enqueue_single", 100),
    ]
    title = "single enqueue, to the best Python peer that commits"
    assert verdict(title, *several) == (1.2, True)


def test_what_was_not_measured_is_not_reached() -> None:
    assert verdict("drain, to PgQueuer") == (None, False)
