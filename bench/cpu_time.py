"""CPU time: how many seconds processes used: one, a tree of them, or the backends of one role.

The time of a live process is read from its CPU clock, which counts nanoseconds and all threads. The
time of children that ended and were waited for is in /proc, in hundredths of a second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import psycopg

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_CPU_CLOCK = 2  # of a whole process, see clock_getcpuclockid(3)
_BACKENDS = "select pid from pg_stat_activity where usename = %s"
_POSTMASTER = "select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int"


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Seconds of CPU time: of all processes, and of the backends of one role."""

    all: float
    role: float

    def since(self, before: CpuTime) -> CpuTime:
        return CpuTime(self.all - before.all, self.role - before.role)

    @property
    def share(self) -> float:
        return self.role / self.all if self.all else 0.0


def read_cpu_time(connection: psycopg.Connection, role: str) -> CpuTime:
    """Return the CPU time that the server has used up to now."""
    backends = {int(row[0]) for row in connection.execute(_BACKENDS, [role]).fetchall()}
    of_role = sum(seconds_of(pid) for pid in backends)
    return CpuTime(seconds_of_tree(postmaster_of(connection)), of_role)


def postmaster_of(connection: psycopg.Connection) -> int:
    """Return the process that is the parent of all processes of this server."""
    row = connection.execute(_POSTMASTER).fetchone()
    assert row is not None
    return int(row[0])


def seconds_of_tree(
    root: int, *, parents: dict[int, int] | None = None, without: Collection[int] = ()
) -> float:
    """Return the CPU time of a process, of all below it, and of their children that ended.

    Reading `parents` takes some milliseconds, so a caller with several trees reads it once.
    """
    tree = _tree(root, parents or read_parents())
    return sum(seconds_of(pid, with_ended=True) for pid in tree if pid not in without)


def _tree(root: int, parents: dict[int, int]) -> list[int]:
    pids = [root]
    for parent in pids:  # grows while it is read
        pids += [pid for pid, its_parent in parents.items() if its_parent == parent]
    return pids


def children_of(parent: int) -> list[int]:
    return [pid for pid, its_parent in read_parents().items() if its_parent == parent]


def read_parents() -> dict[int, int]:
    """Return the parent of every process on this machine."""
    stats = {
        int(path.parent.name): _stat_fields(path) for path in Path("/proc").glob("[0-9]*/stat")
    }
    return {pid: int(fields[1]) for pid, fields in stats.items() if fields}


def seconds_of(pid: int, *, with_ended: bool = False) -> float:
    """Return the CPU time of a process; `with_ended` adds that of its children that ended."""
    try:
        seconds = time.clock_gettime_ns(~pid << 3 | _CPU_CLOCK) / 1e9
    except OSError:  # the process has ended
        return 0.0
    fields = _stat_fields(Path(f"/proc/{pid}/stat")) if with_ended else []
    return seconds + sum(map(int, fields[13:15])) * _TICK


def _stat_fields(path: Path) -> list[str]:
    """Return the fields after the program's name, which may itself contain spaces and brackets."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:  # the process has ended
        return []
