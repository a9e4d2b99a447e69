"""Peer: the description of a job queue that is measured.

Comes before  install.py and measure/, which use it; report.py, which shows it

Uses only the standard library, because a peer's folder is imported in the peer's environment too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Command = tuple[str, ...]  # of Redis


@dataclass(frozen=True, slots=True)
class Plan:
    """How one workload is run with one peer. Slow peers get fewer jobs, to keep a run short."""

    jobs: int
    processes: int = 1
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    every: int = 1  # 3: in every third turn


@dataclass(frozen=True, slots=True)
class Stressed:
    """How a peer is measured under stress, where its driver can `produce`."""

    recovery: str  # how the jobs of a worker that was killed come back, for the record
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])  # beside its best settings


@dataclass(frozen=True, slots=True)
class Peer:
    name: str  # its folder in peers/
    title: str
    kind: Literal["python", "node"]
    store: Literal["postgres", "redis"]
    packages: tuple[str, ...]  # to install; howdah has none, because it is this checkout
    settings: str  # as text, for the record
    keeps: str  # what is kept of a finished job
    workloads: Mapping[str, Plan]
    unfinished: str | tuple[Command, ...]  # counts jobs not settled yet: SQL, or Redis commands
    finished: str | None = None  # SQL that counts finished jobs, where the peer keeps them
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])  # its best settings
    # Other settings that tune.py tries, by workload. A plan's own options come last.
    candidates: Mapping[str, tuple[Mapping[str, Any], ...]] = field(
        default_factory=dict[str, tuple[Mapping[str, Any], ...]]
    )
    stressed: Stressed | None = None
    oldest_python: tuple[int, int] = (3, 11)

    @property
    def is_howdah(self) -> bool:
        return self.name == "howdah"
