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
        self._opened: dict[Path, memoryview[int]] = {}

    def count(self) -> Count:
        calls = total = 0
        firsts: list[int] = []
        for path in self._folder.glob("*.tally"):
            cells = self._cells(path)
            if cells is not None:
                calls += sum(cells[0::CELLS])
                total += sum(cells[1::CELLS])
                firsts += [first for first in cells[2::CELLS] if first]
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

    def _cells(self, path: Path) -> memoryview[int] | None:
        if path not in self._opened:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < SIZE:
                    return None  # made a moment ago
                view = mmap.mmap(file.fileno(), SIZE, prot=mmap.PROT_READ)
            self._opened[path] = memoryview(view).cast("q")
        return self._opened[path]
