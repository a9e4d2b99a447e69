"""Snapshot: drains of a database whose snapshot another session holds, and of one without.

First the held database drains jobs for as long as the snapshot has to be held, so its dead rows
pile up as they would under load. Then both take turns. A snapshot that is held in one database does
not keep the dead rows of another one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from bench.admit.variants import Variant
from bench.adverse.open_transaction import snapshot_held
from bench.case_record import Curve, Point
from bench.measure.prepared_peer import PreparedPeer
from bench.measure.run import drain
from bench.peer import Plan
from bench.server import Postgres


@dataclass(slots=True)
class Drains:
    """The drains of one database, one after another."""

    prepared: PreparedPeer
    jobs: int
    finished: int = 0
    rates: list[Point] = field(default_factory=list[Point])
    since: float = field(default_factory=time.monotonic)

    def drain(self) -> float:
        timing = drain(Plan(self.jobs), self.prepared, earlier=self.finished)
        self.finished += self.jobs
        rate = timing.jobs / timing.seconds
        self.rates.append((round(time.monotonic() - self.since, 1), round(rate)))
        return rate


def beside_snapshot(
    variant: Variant, jobs: int, seconds: float, pairs: int, postgres: Postgres
) -> tuple[list[dict[str, float]], Curve]:
    """Return the rates with and without the snapshot, turn by turn, and all rates over time."""
    with variant.prepared(postgres) as free_peer, variant.prepared(postgres) as held_peer:
        free, held = Drains(free_peer, jobs), Drains(held_peer, jobs)
        free.drain()
        held.drain()
        with snapshot_held(held_peer.store.address):
            held.since = free.since = time.monotonic()
            while time.monotonic() - held.since < seconds:
                held.drain()
            values = [_pair(free, held, held_first=nth % 2 == 0) for nth in range(pairs)]
    title = f"{variant.rule.title}: drains beside a held snapshot, and without"
    return values, Curve(
        case=variant.rule.name,
        title=title,
        x_label="seconds since the snapshot",
        y_label="jobs/s",
        series={"held": held.rates[1:], "without": free.rates[1:]},
    )


def _pair(free: Drains, held: Drains, *, held_first: bool) -> dict[str, float]:
    if held_first:
        with_snapshot, without = held.drain(), free.drain()
    else:
        without, with_snapshot = free.drain(), held.drain()
    return {"held": round(with_snapshot, 1), "free": round(without, 1)}
