"""Targets: the ratios that howdah has to reach, and whether a run reached them.

Each is a ratio of two results of the same run. A ratio of rates has a lower bound, a ratio of times
an upper bound. A target that was not measured is not reached.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from bench.aggregate import Aggregates
from bench.peer import Peer
from bench.peers.registry import PEERS

Value = Callable[[Aggregates], float | None]


@dataclass(frozen=True, slots=True)
class Target:
    title: str
    sense: Literal["at least", "at most", "below"]
    bound: float
    ours: Value
    other: Value
    unit: str = "x"

    def ratio(self, aggregates: Aggregates) -> float | None:
        ours, other = self.ours(aggregates), self.other(aggregates)
        return None if ours is None or not other else ours / other

    def reached(self, aggregates: Aggregates) -> bool:
        ratio = self.ratio(aggregates)
        compare = {"at least": operator.ge, "at most": operator.le, "below": operator.lt}
        return ratio is not None and compare[self.sense](ratio, self.bound)


def howdah(name: str) -> Value:
    return of("howdah", name)


def of(peer: str, name: str) -> Value:
    return lambda aggregates: aggregates[peer, name].median if (peer, name) in aggregates else None


def best(name: str, among: Callable[[Peer], bool]) -> Value:
    """Return the best result of some peers: the highest rate or the shortest time."""
    choose: Callable[[Iterable[float]], float] = min if name.startswith("pickup") else max

    def value(aggregates: Aggregates) -> float | None:
        medians = [
            aggregates[peer.name, name].median
            for peer in PEERS.values()
            if not peer.is_howdah and among(peer) and (peer.name, name) in aggregates
        ]
        return choose(medians) if medians else None

    return value


def any_peer(peer: Peer) -> bool:
    return True


def on_postgres(peer: Peer) -> bool:
    return peer.store == "postgres"


def on_redis(peer: Peer) -> bool:
    return peer.store == "redis"


def in_python(peer: Peer) -> bool:
    return peer.kind == "python"


def in_python_on_postgres(peer: Peer) -> bool:
    return in_python(peer) and on_postgres(peer)


def one_millisecond(aggregates: Aggregates) -> float:
    return 1.0


def _at_least(title: str, bound: float, workload: str, other: Value) -> Target:
    return Target(title, "at least", bound, howdah(workload), other)


TARGETS = (
    _at_least("drain, to Graphile Worker", 1.3, "drain_1", of("graphile_worker", "drain_1")),
    _at_least("drain, to PgQueuer", 4.0, "drain_1", of("pgqueuer", "drain_1")),
    _at_least("drain, to the best Redis peer", 10.0, "drain_1", best("drain_1", on_redis)),
    _at_least("two processes, to one", 0.95, "drain_2", howdah("drain_1")),
    _at_least("16 processes, to one", 0.6, "drain_16", howdah("drain_1")),
    _at_least(
        "bulk enqueue, to the best peer", 2.0, "enqueue_bulk", best("enqueue_bulk", any_peer)
    ),
    # Not the Redis peers: they acknowledge an enqueue before it is on disk.
    _at_least(
        "single enqueue, to the best Python peer that commits",
        1.2,
        "enqueue_single",
        best("enqueue_single", in_python_on_postgres),
    ),
    Target(
        "pickup p50, to the best Postgres peer",
        "at most",
        0.5,
        howdah("pickup_p50"),
        best("pickup_p50", on_postgres),
    ),
    Target("pickup p50", "below", 1.0, howdah("pickup_p50"), one_millisecond, " ms"),
    Target(
        "pickup p99, to the best peer's p95",
        "at most",
        1.0,
        howdah("pickup_p99"),
        best("pickup_p95", any_peer),
    ),
    Target(
        "pickup p50, to the best Redis peer",
        "at most",
        1.0,
        howdah("pickup_p50"),
        best("pickup_p50", on_redis),
    ),
    _at_least("drain, to the bare statements on two connections", 0.6, "drain_1", howdah("floor")),
    _at_least("threads, to the best Python peer", 5.0, "threads", best("threads", in_python)),
    _at_least("processes, to the best Python peer", 2.0, "processes", best("processes", in_python)),
)
