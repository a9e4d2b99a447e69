"""Call counter: handlers count their calls here, and the benchmark reads the counts.

Each process that runs handlers has a file in shared memory. Each thread has a slot of its own in
it: the number of calls, the sum of the job numbers, the time of the first call. The count and the
sum together show that every job ran once. Pickups go to a second file: pickup_log.py.

Times are CLOCK_MONOTONIC, which all processes of a machine share. driver.mjs writes the same
files. Uses only the standard library, because it runs inside every peer's environment.
"""

from __future__ import annotations

import itertools
import mmap
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns

from bench.pickup_log import PICKUPS, Pickup, PickupReader, TimesLog, read_pickups

CALLS_FOLDER = "BENCH_CALLS"  # environment variable: the folder of the counts
ADDRESS = "BENCH_ADDRESS"  # environment variable: the address of the store
SLOTS = 512
CELLS = 3  # calls, sum, time of the first call
SIZE = SLOTS * CELLS * 8


class CallCounter:
    """Counts the calls of the handlers in this process."""

    def __init__(self, folder: Path | str) -> None:
        self._local = threading.local()
        self._slots = itertools.count()
        self._folder = Path(folder)
        self._pickups = TimesLog(self._folder, PICKUPS)

    def handled(self, number: int) -> None:
        """Count one call of the handler, for the job with this number."""
        try:
            slot = self._local.slot
        except AttributeError:
            slot = self._local.slot = self._open_slot()
        slot[0] += 1
        slot[1] += number

    def picked_up(self, sent: int) -> None:
        """Record that a job sent at `sent` has reached its handler now."""
        self._pickups.add(sent, monotonic_ns())

    def _open_slot(self) -> memoryview[int]:
        number = next(self._slots)
        path = self._folder / f"{os.getpid()}.calls"
        with path.open("a+b") as file:
            file.truncate(SIZE)
            cells = memoryview(mmap.mmap(file.fileno(), SIZE)).cast("q")
        slot = cells[number * CELLS : (number + 1) * CELLS]
        slot[2] = monotonic_ns()
        return slot


@dataclass(frozen=True, slots=True)
class CallCount:
    calls: int
    sum: int
    first_ns: int  # 0 before the first call


class CallReader:
    """Reads the counts while handlers write them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: dict[str, memoryview[int]] = {}
        self._pickups = PickupReader(folder)

    def count(self) -> CallCount:
        """Add up all slots. Slots are used in order, so the first unused one ends a file.

        This is called often while the peer works, so it has to be cheap.
        """
        calls = total = 0
        first_calls: list[int] = []
        for name in os.listdir(self.folder):
            cells = self._cells(name)
            for slot in range(0, len(cells), CELLS):
                if not (first := cells[slot + 2]):
                    break
                calls += cells[slot]
                total += cells[slot + 1]
                first_calls.append(first)
        return CallCount(calls, total, min(first_calls, default=0))

    def pickups(self) -> int:
        """Count the pickups so far."""
        return self._pickups.count()

    def pickups_ms(self) -> list[float]:
        """Return the pickup times in milliseconds, in the order in which the jobs were sent."""
        return [pickup.ms for pickup in sorted(read_pickups(self.folder), key=_sent)]

    def _cells(self, name: str) -> memoryview[int]:
        if name not in self._opened:
            path = self.folder / name
            if path.suffix != ".calls" or path.stat().st_size < SIZE:
                return memoryview(b"").cast("q")  # not yet at its full size, or another file
            with path.open("rb") as file:
                view = mmap.mmap(file.fileno(), SIZE, prot=mmap.PROT_READ)
            self._opened[name] = memoryview(view).cast("q")
        return self._opened[name]


def _sent(pickup: Pickup) -> int:
    return pickup.sent_ns
