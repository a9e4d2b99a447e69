"""Sample record: a small record with numbers that are easy to check."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers.registry import PEERS
from bench.record import Measurement, Record, note


def rates(peer: str, workload: str, *values: float) -> list[Measurement]:
    """One turn per rate, each a thousand jobs long."""
    return [
        Measurement(peer=peer, workload=workload, turn=i, jobs=1000, seconds=1000 / value)
        for i, value in enumerate(values, 1)
    ]


def pickups(peer: str, *repetitions: Sequence[float]) -> list[Measurement]:
    return [
        Measurement(peer=peer, workload="pickup", turn=i, jobs=len(ms), pickups_ms=tuple(ms))
        for i, ms in enumerate(repetitions, 1)
    ]


def costs(
    peer: str, workload: str, *values: tuple[float, float, float], rate: float = 1000
) -> list[Measurement]:
    """One turn per value: CPU time of the server and of the worker, and bytes of WAL."""
    return [
        Measurement(
            peer=peer,
            workload=workload,
            turn=i,
            jobs=1000,
            seconds=1000 / rate,
            server_cpu_us=server,
            worker_cpu_us=worker,
            wal_bytes=wal,
        )
        for i, (server, worker, wal) in enumerate(values, 1)
    ]


def sample(*measurements: Measurement, problem: str | None = None) -> Record:
    """A record of howdah, Graphile Worker, Procrastinate and Celery. Celery may have a problem."""
    installed = ("howdah", "graphile_worker", "procrastinate")
    notes = {name: note(PEERS[name], {"python": "3.11"}) for name in installed}
    return Record(
        trial=False,
        whole=True,
        command="python -m bench.compare",
        date="2025-01-02 03:04 UTC",
        commit="abcdef",
        machine={
            "cpu": "a cpu",
            "cores": "2",
            "memory": "4 GiB",
            "kernel": "Linux 6",
            "system": "Debian",
            "python": "3.11.7",
        },
        postgres={"version": "18.1", "fsync": "on"},
        redis={},
        quiet=True,
        peers={**notes, "celery": note(PEERS["celery"], {}, problem)},
        measurements=list(measurements),
    )
