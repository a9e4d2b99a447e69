"""Stresses: what disturbs a peer, how its jobs come meanwhile, and how long each phase lasts.

Jobs that come at a rate are enqueued ten at a time. Some peers send a NOTIFY with every enqueue
call, and PostgreSQL lets only one such transaction commit at a time. With a call for each job the
rate of those peers would be that of the disk, and the stress would hardly be seen.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.adverse.phases import Lengths

RATE = 800  # jobs/s
PER_CALL = 10  # jobs in an enqueue call, at this rate
AHEAD = 1000  # jobs in line, at saturation


@dataclass(frozen=True, slots=True)
class Stress:
    """One stress. Jobs come at a rate, or so many are kept ahead of the worker."""

    name: str
    title: str
    rate: int = 0
    per_call: int = PER_CALL
    ahead: int = 0
    chaos: bool = False  # workers are killed, and the server restarts; otherwise a snapshot is held

    @property
    def options(self) -> dict[str, int]:
        """Return what the producer is told."""
        if self.rate:
            return {"rate": self.rate, "per_call": self.per_call}
        return {"ahead": self.ahead}


STRESSES = {
    stress.name: stress
    for stress in (
        Stress("snapshot", f"a snapshot held open, {RATE} jobs/s", rate=RATE),
        Stress(
            "snapshot_saturated",
            f"a snapshot held open, at saturation with {AHEAD:,} jobs ahead",
            ahead=AHEAD,
        ),
        Stress(
            "chaos",
            f"workers killed and one restart of the server, {RATE} jobs/s",
            rate=RATE,
            chaos=True,
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Scale:
    """How long a run is, in seconds."""

    lengths: Lengths
    kill_every: float
    done_within: float  # after the recovery, until every job has to be done

    @property
    def kills(self) -> list[float]:
        """Return when the worker is killed, in seconds since the stress began."""
        number = int(self.lengths.stress / self.kill_every)
        return [(nth + 0.5) * self.kill_every for nth in range(number)]

    @property
    def restart(self) -> float:
        """Return when the server restarts: half of the stress is over, and no kill is near."""
        return self.kill_every * (len(self.kills) // 2)

    def as_seconds(self) -> dict[str, float]:
        """Return the lengths for the record."""
        return {
            "clean": self.lengths.clean,
            "stress": self.lengths.stress,
            "recovery": self.lengths.recovery,
            "kill_every": self.kill_every,
            "done_within": self.done_within,
        }


FULL = Scale(Lengths(clean=15.0, stress=30.0, recovery=15.0), kill_every=5.0, done_within=45.0)
QUICK = Scale(Lengths(clean=2.0, stress=4.0, recovery=2.0), kill_every=2.0, done_within=3.0)
