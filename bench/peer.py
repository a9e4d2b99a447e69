"""Peer: what the benchmark has to know of a job queue to measure it.

Comes before  install.py and measure.py, which act on it; report.py, which shows it

Only the standard library: each peer's folder is imported inside that peer's environment too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Command = tuple[str, ...]  # of Redis


@dataclass(frozen=True, slots=True)
class Plan:
    """How one work is done with one peer: slow peers get fewer jobs, to keep a run short."""

    jobs: int
    processes: int = 1
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Peer:
    name: str  # its folder in peers/
    title: str
    kind: Literal["python", "node"]
    store: Literal["postgres", "redis"]
    packages: tuple[str, ...]  # to install; none for howdah, which is this checkout
    settings: str  # in words, for the record
    keeps: str  # what is left of a finished job
    works: Mapping[str, Plan]
    unfinished: str | tuple[Command, ...]  # counts jobs not settled yet: SQL, or Redis commands
    finished: str | None = None  # SQL that counts finished jobs, where the peer keeps them

    @property
    def is_howdah(self) -> bool:
        return self.name == "howdah"
