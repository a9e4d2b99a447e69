"""Variants: a peer in an empty database, told about one rule."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from bench.admit.rules import Rule
from bench.install import Environment
from bench.measure.prepared_peer import PreparedPeer, Timing, prepare
from bench.peer import Peer
from bench.server import Postgres


@dataclass(frozen=True, slots=True)
class Variant:
    """A peer with its settings for a rule. Every verb of its driver gets them."""

    peer: Peer
    environment: Environment
    rule: Rule
    options: Mapping[str, Any]

    @contextmanager
    def prepared(self, postgres: Postgres) -> Generator[PreparedPeer]:
        options = {**self.peer.options, **self.rule.options, **self.options}
        told = replace(self.peer, options=options)
        with prepare(told, self.environment, postgres, None) as prepared:
            yield prepared


def values_of(timing: Timing) -> dict[str, float]:
    """Return the rate of a drain, and what a job cost: CPU in microseconds, and bytes of WAL."""
    values = {"rate": round(timing.jobs / timing.seconds, 2)}
    if usage := timing.usage:
        values["server_cpu"] = round(usage.server_cpu * 1e6 / timing.jobs, 2)
        values["worker_cpu"] = round(usage.worker_cpu * 1e6 / timing.jobs, 2)
        if usage.wal_bytes is not None:
            values["wal"] = round(usage.wal_bytes / timing.jobs, 1)
    return values
