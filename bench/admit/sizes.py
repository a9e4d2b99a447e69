"""Sizes: how much a run measures. A quick run shows that everything works, and nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of jobs and turns, and seconds."""

    jobs: int  # of each drain; slow peers have fewer
    turns: int  # of howdah
    turns_of_peers: int
    pickups: int
    checked: int  # jobs of a millisecond
    snapshot_jobs: int  # of each drain beside a snapshot
    snapshot_seconds: float
    snapshot_pairs: int
    rate_seconds: float
    waiting: int  # for one key, beside a claim
    claims: int
    crowd: int  # jobs of the tenant that is ahead
    tenants: int

    def as_record(self) -> dict[str, float]:
        return asdict(self)


FULL = Sizes(
    jobs=100_000,
    turns=9,
    turns_of_peers=6,
    pickups=200,
    checked=1000,
    snapshot_jobs=50_000,
    snapshot_seconds=60.0,
    snapshot_pairs=6,
    rate_seconds=60.0,
    waiting=1_000_000,
    claims=30,
    crowd=200_000,
    tenants=9,
)
QUICK = Sizes(
    jobs=200,
    turns=1,
    turns_of_peers=1,
    pickups=10,
    checked=50,
    snapshot_jobs=200,
    snapshot_seconds=0.0,
    snapshot_pairs=1,
    rate_seconds=2.0,
    waiting=5000,
    claims=6,
    crowd=20_000,
    tenants=2,
)
