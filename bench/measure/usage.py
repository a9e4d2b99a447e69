"""Usage: what a measured interval cost, beside its seconds.

That is the CPU time, user and system, of all processes of the server and of all processes of the
peer: its workers, or the process that enqueues. For PostgreSQL it is also the bytes of WAL. A
machine that changes its speed changes these less than it changes the rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.cpu_time import read_parents, seconds_of_tree
from bench.driver_process import DriverProcess
from bench.measure.store import Store


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds of CPU time, and bytes of WAL where there is one."""

    server_cpu: float
    worker_cpu: float
    wal_bytes: int | None

    def since(self, before: Usage) -> Usage:
        wal_bytes = None
        if self.wal_bytes is not None and before.wal_bytes is not None:
            wal_bytes = self.wal_bytes - before.wal_bytes
        return Usage(
            self.server_cpu - before.server_cpu, self.worker_cpu - before.worker_cpu, wal_bytes
        )


def read_usage(store: Store, processes: Sequence[DriverProcess]) -> Usage:
    """Return what was used up to now. The peer's processes come first: they may soon end."""
    parents = read_parents()
    worker_cpu = sum(seconds_of_tree(process.pid, parents=parents) for process in processes)
    return Usage(store.cpu_seconds(parents), worker_cpu, store.wal_bytes())
