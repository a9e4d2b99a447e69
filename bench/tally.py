"""Tally: how a handler tells the benchmark that it was called, at next to no cost.

Each process that runs handlers has a file of slots in shared memory, each thread a slot of its own:
calls counted, job numbers added up, time of the first call. Count and sum together show that
every job ran and none ran twice. Pickups are appended to a second file, as pairs of times.

Times are CLOCK_MONOTONIC, which all processes of one machine share. Driver.mjs writes the same
files. Only the standard library: this runs inside every peer's environment.
"""

from __future__ import annotations

import itertools
import mmap
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns

FOLDER = "BENCH_TALLY"  # the environment variable that names the folder
ADDRESS = "BENCH_ADDRESS"  # and the one that names the store, as the driver's arguments do
SLOTS = 512
CELLS = 3  # count, sum, first
SIZE = SLOTS * CELLS * 8


class Tally:
    """What the handlers of this process write."""

    def __init__(self, folder: Path | str) -> None:
        self._local = threading.local()
        self._slots = itertools.count()
        self._folder = Path(folder)

    def handled(self, number: int) -> None:
        """Count one call of the handler."""
        try:
            slot = self._local.slot
        except AttributeError:
            slot = self._local.slot = self._open_slot()
        slot[0] += 1
        slot[1] += number

    def picked_up(self, sent: int) -> None:
        """Note when a job sent at `sent` reached its handler."""
        now = monotonic_ns()
        with (self._folder / f"{os.getpid()}.pickup").open("ab") as file:
            file.write(sent.to_bytes(8, "little") + now.to_bytes(8, "little"))

    def _open_slot(self) -> memoryview[int]:
        number = next(self._slots)
        path = self._folder / f"{os.getpid()}.tally"
        with path.open("a+b") as file:
            file.truncate(SIZE)
            cells = memoryview(mmap.mmap(file.fileno(), SIZE)).cast("q")
        slot = cells[number * CELLS : (number + 1) * CELLS]
        slot[2] = monotonic_ns()
        return slot


@dataclass(frozen=True, slots=True)
class Count:
    calls: int
    sum: int
    first_ns: int  # 0 before the first call


class Reader:
    """What the benchmark reads while handlers write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: dict[str, memoryview[int]] = {}

    def count(self) -> Count:
        """Add up what was written; slots are given out in order, so the first unused one ends it.

        Asking must cost next to nothing, too: it is done again and again, beside the peer.
        """
        calls = total = 0
        firsts: list[int] = []
        for name in os.listdir(self._folder):
            cells = self._cells(name)
            for slot in range(0, len(cells), CELLS):
                if not (first := cells[slot + 2]):
                    break
                calls += cells[slot]
                total += cells[slot + 1]
                firsts.append(first)
        return Count(calls, total, min(firsts, default=0))

    def pickups(self) -> int:
        """Count the pickups so far."""
        return sum(path.stat().st_size for path in self._folder.glob("*.pickup")) // 16

    def pickups_ms(self) -> list[float]:
        """Return the pickup times in milliseconds, in the order the jobs were sent."""
        pairs: list[tuple[int, int]] = []
        for path in self._folder.glob("*.pickup"):
            numbers = memoryview(path.read_bytes()).cast("q")
            pairs += zip(numbers[0::2], numbers[1::2], strict=True)
        return [(picked - sent) / 1e6 for sent, picked in sorted(pairs)]

    def _cells(self, name: str) -> memoryview[int]:
        if name not in self._opened:
            path = self._folder / name
            if path.suffix != ".tally" or path.stat().st_size < SIZE:
                return memoryview(b"").cast("q")  # made a moment ago, or of the other kind
            with path.open("rb") as file:
                view = mmap.mmap(file.fileno(), SIZE, prot=mmap.PROT_READ)
            self._opened[name] = memoryview(view).cast("q")
        return self._opened[name]
