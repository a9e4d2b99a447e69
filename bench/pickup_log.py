"""Pickup log: when each job was sent, and when its handler began, of as many jobs as can run.

Handlers write pairs of times into a file of their process, the cases read them. call_counter.py
does the same for a few hundred jobs, with a write to the file for each.

Times are CLOCK_MONOTONIC in nanoseconds, which all processes of a machine share.
"""

from __future__ import annotations

import asyncio
import os
import struct
from pathlib import Path
from time import monotonic_ns
from typing import NamedTuple

SUFFIX = ".times"
FLUSH = 0.1  # seconds between two writes to the file
_PAIR = struct.Struct("<qq")


class Pickup(NamedTuple):
    """One job: when it was sent, and when its handler began."""

    began_ns: int
    sent_ns: int

    @property
    def ms(self) -> float:
        return (self.began_ns - self.sent_ns) / 1e6


class PickupLog:
    """Writes the pickups of this process."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f"{os.getpid()}{SUFFIX}"
        self._unwritten = bytearray()

    def picked_up(self, sent_ns: int) -> None:
        self._unwritten += _PAIR.pack(monotonic_ns(), sent_ns)

    def flush(self) -> None:
        with self._path.open("ab") as file:
            file.write(self._unwritten)
        self._unwritten.clear()

    async def flush_forever(self) -> None:
        """Write to the file again and again: the process may be killed at any time."""
        while True:
            await asyncio.sleep(FLUSH)
            self.flush()


def read_pickups(folder: Path) -> list[Pickup]:
    """Return the pickups of all processes, in the order in which the handlers began."""
    pickups: list[Pickup] = []
    for path in folder.glob(f"*{SUFFIX}"):
        content = path.read_bytes()
        whole = content[: len(content) // _PAIR.size * _PAIR.size]
        pickups += map(Pickup._make, _PAIR.iter_unpack(whole))
    return sorted(pickups)
