"""CPU time: how many seconds the server's processes used, in total and for one role.

Read from /proc, which counts in hundredths of a second. The time of a process that ended is
counted with its parent.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psycopg

_TICK = 1 / os.sysconf("SC_CLK_TCK")
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
    postmaster = _read_int(connection, _POSTMASTER)
    backends = {int(row[0]) for row in connection.execute(_BACKENDS, [role]).fetchall()}
    seconds = {postmaster: seconds_of(postmaster, with_ended=True)}
    seconds |= {pid: seconds_of(pid) for pid in children_of(postmaster)}
    return CpuTime(sum(seconds.values()), sum(seconds.get(pid, 0.0) for pid in backends))


def _read_int(connection: psycopg.Connection, sql: str) -> int:
    row = connection.execute(sql.encode()).fetchone()
    assert row is not None
    return int(row[0])


def children_of(parent: int) -> list[int]:
    children: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = _stat_fields(path)
        if fields and int(fields[1]) == parent:
            children.append(int(path.parent.name))
    return children


def seconds_of(pid: int, *, with_ended: bool = False) -> float:
    """Return the CPU time of a process; `with_ended` adds that of its children that ended."""
    fields = _stat_fields(Path(f"/proc/{pid}/stat"))
    return sum(map(int, fields[11 : 15 if with_ended else 13])) * _TICK


def _stat_fields(path: Path) -> list[str]:
    """Return the fields after the program's name, which may itself contain spaces and brackets."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:  # the process has ended
        return []
