"""Every call of a handler is counted, whichever thread makes it."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.tally import CELLS, Count, Reader, Tally


def test_each_thread_writes_where_no_other_does(tmp_path: Path) -> None:
    tally, threads = Tally(tmp_path), 8
    together = threading.Barrier(threads)

    def handle(number: int) -> None:
        together.wait(20)
        tally.handled(number)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(handle, range(threads)))
    (file,) = tmp_path.glob("*.tally")
    calls = memoryview(file.read_bytes()).cast("q")[0::CELLS]
    assert [each for each in calls if each] == [1] * threads
    count = Reader(tmp_path).count()
    assert (count.calls, count.sum) == (threads, sum(range(threads)))


def test_the_first_call_is_remembered(tmp_path: Path) -> None:
    tally = Tally(tmp_path)
    before = time.monotonic_ns()
    tally.handled(1)
    after = time.monotonic_ns()
    tally.handled(2)
    count = Reader(tmp_path).count()
    assert count == Count(2, 3, count.first_ns)
    assert before <= count.first_ns <= after


def test_before_the_first_call_there_is_nothing(tmp_path: Path) -> None:
    assert Reader(tmp_path).count() == Count(0, 0, 0)


def test_pickups_come_in_the_order_they_were_sent(tmp_path: Path) -> None:
    tally, now = Tally(tmp_path), time.monotonic_ns()
    for ago in (0, 3_000_000_000, 7_000_000_000):
        tally.picked_up(now - ago)
    waited = Reader(tmp_path).pickups_ms()
    assert waited == sorted(waited, reverse=True)
    assert [ms // 1000 for ms in waited] == [7, 3, 0]
