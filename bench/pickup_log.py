"""Pickup log: when each job was sent, and when its handler began, of as many jobs as can run.

A process writes pairs of times into a file of its own, which it maps into its memory. So a pair
costs little, and a process that is killed loses none. Handlers write when a job was sent and when
they began (`PICKUPS`). A producer writes when a job was sent and when the answer came (`SENT`); the
latter is 0 if the call failed. Unused pairs are zeros. driver.mjs writes the same files.

Times are CLOCK_MONOTONIC in nanoseconds, which all processes of a machine share. Uses only the
standard library, because it runs inside every peer's environment.
"""

from __future__ import annotations

import itertools
import mmap
import os
import struct
import threading
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

PICKUPS, SENT = ".pickup", ".sent"  # what the names of the files end with
_PAIR = struct.Struct("<qq")
_MAPPED = 32_768  # pairs that are mapped at once
_READ = 512  # pairs that are read at once


class Pickup(NamedTuple):
    """One job: when it was sent, and when its handler began."""

    began_ns: int
    sent_ns: int

    @property
    def ms(self) -> float:
        return (self.began_ns - self.sent_ns) / 1e6


class TimesLog:
    """Writes pairs of times of this process; the first time of a pair is not 0."""

    def __init__(self, folder: Path, suffix: str) -> None:
        self._folder, self._suffix = folder, suffix
        self._numbers = itertools.count()
        self._parts: list[memoryview[int]] = []
        self._growing = threading.Lock()

    def add(self, first_ns: int, second_ns: int) -> None:
        nth, at = divmod(next(self._numbers), _MAPPED)
        while nth >= len(self._parts):
            self._grow(nth)
        cells = self._parts[nth]
        cells[2 * at + 1] = second_ns
        cells[2 * at] = first_ns  # the last: from now on the pair counts

    def _grow(self, nth: int) -> None:
        with self._growing:
            if nth < len(self._parts):  # another thread was faster
                return
            size = _MAPPED * _PAIR.size
            begin = len(self._parts) * size
            with (self._folder / f"{os.getpid()}{self._suffix}").open("a+b") as file:
                file.truncate(begin + size)
                mapped = mmap.mmap(file.fileno(), size, offset=begin)
            self._parts.append(memoryview(mapped).cast("q"))


def read_times(folder: Path, suffix: str) -> Generator[tuple[int, int]]:
    """Yield the pairs of all processes."""
    for path in folder.glob(f"*{suffix}"):
        whole = _whole_pairs(path.read_bytes())
        yield from (pair for pair in _PAIR.iter_unpack(whole) if pair[0])


def read_pickups(folder: Path) -> list[Pickup]:
    """Return the pickups of all processes, in the order in which the handlers began."""
    return sorted(Pickup(began_ns, sent_ns) for sent_ns, began_ns in read_times(folder, PICKUPS))


class PickupReader:
    """Counts pickups while handlers write them. Each is read once, so asking often is cheap."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: Counter[Path] = Counter()

    def count(self) -> int:
        for path in self._folder.glob(f"*{PICKUPS}"):
            with path.open("rb") as file:
                file.seek(self._seen[path] * _PAIR.size)
                while used := _used(file.read(_READ * _PAIR.size)):
                    self._seen[path] += used
                    if used < _READ:
                        break
        return self._seen.total()


def _used(content: bytes) -> int:
    """Return how many pairs were written before the first that is unused."""
    first_times = memoryview(_whole_pairs(content)).cast("q")[0::2]
    return next((nth for nth, time in enumerate(first_times) if not time), len(first_times))


def _whole_pairs(content: bytes) -> bytes:
    return content[: len(content) // _PAIR.size * _PAIR.size]
