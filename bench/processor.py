"""Processor: how much CPU time the server's processes took, all of them and those of one role.

Read from /proc, as Linux counts it, in steps of a hundredth of a second. Processes that ended in
between are counted with their parent.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psycopg

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_BACKENDS = "select pid from pg_stat_activity where usename = %s"
_PARENT = "select split_part(pg_read_file('postmaster.pid'), chr(10), 1)::int"


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of CPU time."""

    all: float
    role: float

    def since(self, before: Spent) -> Spent:
        return Spent(self.all - before.all, self.role - before.role)

    @property
    def share(self) -> float:
        return self.role / self.all if self.all else 0.0


def spent(connection: psycopg.Connection, role: str) -> Spent:
    """Ask how much the server has spent up to now, and how much of it for a role."""
    parent = _number(connection, _PARENT)
    own = {int(row[0]) for row in connection.execute(_BACKENDS, [role]).fetchall()}
    seconds = {parent: seconds_of(parent, with_ended=True)}
    seconds |= {pid: seconds_of(pid) for pid in children_of(parent)}
    return Spent(sum(seconds.values()), sum(seconds.get(pid, 0.0) for pid in own))


def _number(connection: psycopg.Connection, sql: str) -> int:
    row = connection.execute(sql.encode()).fetchone()
    assert row is not None
    return int(row[0])


def children_of(parent: int) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = _fields(path)
        if fields and int(fields[1]) == parent:
            found.append(int(path.parent.name))
    return found


def seconds_of(pid: int, *, with_ended: bool = False) -> float:
    """Return the CPU time of a process; with that of its children that have ended, if asked."""
    fields = _fields(Path(f"/proc/{pid}/stat"))
    return sum(map(int, fields[11 : 15 if with_ended else 13])) * _TICK


def _fields(path: Path) -> list[str]:
    """Return the fields behind the name of the program, which may have anything in it."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:  # it is gone
        return []
