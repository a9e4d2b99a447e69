"""Targets: the ratios howdah sets itself, and whether a run reached them.

Each is a ratio of two figures of the same run. For a rate it must be at least so much; for a
time at most. What was not measured is not reached, and says so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from bench.figures import Figures
from bench.peer import Peer
from bench.peers.roster import ROSTER

Value = Callable[[Figures], float | None]


@dataclass(frozen=True, slots=True)
class Target:
    title: str
    sense: Literal["at least", "at most", "below"]
    bound: float
    ours: Value
    other: Value
    unit: str = "x"

    def ratio(self, figures: Figures) -> float | None:
        ours, other = self.ours(figures), self.other(figures)
        return None if ours is None or not other else ours / other

    def reached(self, figures: Figures) -> bool:
        ratio = self.ratio(figures)
        compare = {"at least": operator.ge, "at most": operator.le, "below": operator.lt}
        return ratio is not None and compare[self.sense](ratio, self.bound)


def howdah(name: str) -> Value:
    return of("howdah", name)


def of(peer: str, name: str) -> Value:
    return lambda figures: figures[peer, name].median if (peer, name) in figures else None


def best(name: str, among: Callable[[Peer], bool]) -> Value:
    """Return the best figure of the peers among these: the highest rate or the shortest time."""
    choose: Callable[[Iterable[float]], float] = min if name.startswith("pickup") else max

    def value(figures: Figures) -> float | None:
        found = [
            figures[peer.name, name].median
            for peer in ROSTER.values()
            if not peer.is_howdah and among(peer) and (peer.name, name) in figures
        ]
        return choose(found) if found else None

    return value


def anyone(peer: Peer) -> bool:
    return True


def on_postgres(peer: Peer) -> bool:
    return peer.store == "postgres"


def on_redis(peer: Peer) -> bool:
    return peer.store == "redis"


def in_python(peer: Peer) -> bool:
    return peer.kind == "python"


def in_python_on_postgres(peer: Peer) -> bool:
    return in_python(peer) and on_postgres(peer)


def one(figures: Figures) -> float:
    return 1.0


def _at_least(title: str, bound: float, work: str, other: Value) -> Target:
    return Target(title, "at least", bound, howdah(work), other)


TARGETS = (
    _at_least("drain, to Graphile Worker", 1.3, "drain_1", of("graphile_worker", "drain_1")),
    _at_least("drain, to PgQueuer", 4.0, "drain_1", of("pgqueuer", "drain_1")),
    _at_least("drain, to the best Redis peer", 10.0, "drain_1", best("drain_1", on_redis)),
    _at_least("two processes, to one", 0.95, "drain_2", howdah("drain_1")),
    _at_least("16 processes, to one", 0.6, "drain_16", howdah("drain_1")),
    _at_least("bulk enqueue, to the best peer", 2.0, "enqueue_bulk", best("enqueue_bulk", anyone)),
    # "Each committed" leaves out the Redis peers, who acknowledge before anything is on disk.
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
    Target("pickup p50", "below", 1.0, howdah("pickup_p50"), one, " ms"),
    Target(
        "pickup p99, to the best peer's p95",
        "at most",
        1.0,
        howdah("pickup_p99"),
        best("pickup_p95", anyone),
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
