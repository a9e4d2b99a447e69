"""Targets: what howdah has to reach, and whether a run reached it.

Most are ratios of two results of the same turn, the others are values of howdah alone. Rates have a
lower bound, times and costs an upper bound. A target is reached when the end of its interval that
is nearer to the bound reaches it. Without an interval it is not decided.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from bench.aggregate import CPU, SERVER_CPU, WAL, WORKER_CPU, Results, Series, per_job
from bench.interval import Interval, interval
from bench.peer import Peer
from bench.peers.registry import PEERS

Value = Callable[[Results], Series | None]
Sense = Literal["at least", "at most", "below"]


@dataclass(frozen=True, slots=True)
class Target:
    title: str
    sense: Sense
    bound: float
    ours: Value
    other: Value | None = None  # what ours is divided by
    unit: str = "x"

    def measured(self, results: Results) -> Interval | None:
        """Return the median over the turns, or None if there was nothing to compare."""
        ours = self.ours(results)
        if ours is None or self.other is None:
            return interval(list(ours.values())) if ours else None
        other = self.other(results)
        return ratio(ours, other) if other else None

    def reached(self, measured: Interval) -> bool | None:
        """Return whether the nearer end of the interval reaches the bound; None: not decided."""
        if measured.bounds is None:
            return None
        low, high = measured.bounds
        match self.sense:
            case "at least":
                return low >= self.bound
            case "at most":
                return high <= self.bound
            case "below":
                return high < self.bound


def ratio(ours: Series, theirs: Series) -> Interval | None:
    """Divide turn by turn. Turns that only one side has are left out."""
    ratios = [ours[turn] / theirs[turn] for turn in ours if theirs.get(turn)]
    return interval(ratios) if ratios else None


def howdah(name: str) -> Value:
    return of("howdah", name)


def of(peer: str, name: str) -> Value:
    return lambda results: results.get((peer, name))


def best(name: str, among: Callable[[Peer], bool]) -> Value:
    """Return the best peer's results: the peer with the highest rate or the shortest time."""

    def value(results: Results) -> Series | None:
        candidates = [
            results[peer.name, name]
            for peer in PEERS.values()
            if not peer.is_howdah and among(peer) and (peer.name, name) in results
        ]
        return _best(candidates, shortest=name.startswith("pickup"))

    return value


def better(peer: str, workloads: Iterable[str], cost: str | None = None) -> Value:
    """Return the rates of the workload that the peer does faster, or what a job costs there.

    The workload is chosen once, by its median: choosing in each turn would favour the peer that
    varies more.
    """

    def value(results: Results) -> Series | None:
        rates = {name: results[peer, name] for name in workloads if (peer, name) in results}
        fastest = _best(list(rates.values()), shortest=False)
        name = next((name for name, series in rates.items() if series is fastest), "")
        return results.get((peer, per_job(name, cost) if cost else name))

    return value


def _best(candidates: list[Series], *, shortest: bool) -> Series | None:
    choose = min if shortest else max
    return choose(candidates, key=lambda series: statistics.median(series.values()), default=None)


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


def _at_least(title: str, bound: float, workload: str, other: Value) -> Target:
    return Target(title, "at least", bound, howdah(workload), other)


def _at_most(title: str, bound: float, name: str, other: Value) -> Target:
    return Target(title, "at most", bound, howdah(name), other)


def _cost(title: str, bound: float, workload: str, cost: str, unit: str) -> Target:
    return Target(title, "at most", bound, howdah(per_job(workload, cost)), None, unit)


ONE_OR_TWO = ("drain_1", "drain_2")

TARGETS = (
    _at_least("drain, to Graphile Worker", 1.5, "drain_1", of("graphile_worker", "drain_1")),
    Target(
        "drain, the better of one and two processes each, to Graphile Worker",
        "at least",
        1.35,
        better("howdah", ONE_OR_TWO),
        better("graphile_worker", ONE_OR_TWO),
    ),
    Target(
        "CPU time per job in that drain, to Graphile Worker",
        "at most",
        0.8,
        better("howdah", ONE_OR_TWO, CPU),
        better("graphile_worker", ONE_OR_TWO, CPU),
    ),
    _at_least("drain, to PgQueuer", 6.0, "drain_1", of("pgqueuer", "drain_1")),
    _at_least("drain, to the best Redis peer", 10.0, "drain_1", best("drain_1", on_redis)),
    _at_least("drain, to the bare statements on two connections", 0.8, "drain_1", howdah("floor")),
    _cost("server CPU per drained job", 14.0, "drain_1", SERVER_CPU, " µs"),
    _cost("server CPU per job, bare statements of 1,000", 14.0, "floor", SERVER_CPU, " µs"),
    _cost("worker CPU per drained job", 8.0, "drain_1", WORKER_CPU, " µs"),
    _cost("WAL per drained job", 700.0, "drain_1", WAL, " bytes"),
    _at_least("two processes, to one", 0.95, "drain_2", howdah("drain_1")),
    _at_least("16 processes, to one", 0.9, "drain_16", howdah("drain_1")),
    _at_least("threads, to the best Python peer", 5.0, "threads", best("threads", in_python)),
    _at_least("processes, to the best Python peer", 2.0, "processes", best("processes", in_python)),
    _at_least(
        "bulk enqueue, to the best peer", 3.0, "enqueue_bulk", best("enqueue_bulk", any_peer)
    ),
    # Not the Redis peers: they acknowledge an enqueue before it is on disk.
    _at_least(
        "single enqueue, to the best Python peer that commits",
        1.5,
        "enqueue_single",
        best("enqueue_single", in_python_on_postgres),
    ),
    _at_most(
        "pickup p50, to the best Postgres peer", 0.4, "pickup_p50", best("pickup_p50", on_postgres)
    ),
    _at_most(
        "pickup p99, to the best Postgres peer", 0.4, "pickup_p99", best("pickup_p99", on_postgres)
    ),
    _at_most(
        "pickup p50, to the best Redis peer", 0.75, "pickup_p50", best("pickup_p50", on_redis)
    ),
    _at_most(
        "pickup p99, to the best Redis peer", 0.75, "pickup_p99", best("pickup_p99", on_redis)
    ),
    _at_most("pickup p99, to the best peer's p95", 1.0, "pickup_p99", best("pickup_p95", any_peer)),
    Target("pickup p50", "below", 1.0, howdah("pickup_p50"), None, " ms"),
)
