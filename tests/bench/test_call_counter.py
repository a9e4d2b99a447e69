"""Every call of a handler is counted, in every thread."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.call_counter import CELLS, CallCount, CallCounter, CallReader


def test_each_thread_writes_to_a_place_of_its_own(tmp_path: Path) -> None:
    counter, threads = CallCounter(tmp_path), 8
    together = threading.Barrier(threads)

    def handle(number: int) -> None:
        together.wait(20)
        counter.handled(number)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(handle, range(threads)))
    (file,) = tmp_path.glob("*.calls")
    calls = memoryview(file.read_bytes()).cast("q")[0::CELLS]
    assert [number for number in calls if number] == [1] * threads
    count = CallReader(tmp_path).count()
    assert (count.calls, count.sum) == (threads, sum(range(threads)))


def test_the_first_call_is_remembered(tmp_path: Path) -> None:
    counter = CallCounter(tmp_path)
    before = time.monotonic_ns()
    counter.handled(1)
    after = time.monotonic_ns()
    counter.handled(2)
    count = CallReader(tmp_path).count()
    assert count == CallCount(2, 3, count.first_ns)
    assert before <= count.first_ns <= after


def test_before_the_first_call_there_is_nothing(tmp_path: Path) -> None:
    assert CallReader(tmp_path).count() == CallCount(0, 0, 0)


def test_pickups_come_in_the_order_they_were_sent(tmp_path: Path) -> None:
    counter, now = CallCounter(tmp_path), time.monotonic_ns()
    for ago in (0, 3_000_000_000, 7_000_000_000):
        counter.picked_up(now - ago)
    waited = CallReader(tmp_path).pickups_ms()
    assert waited == sorted(waited, reverse=True)
    assert [ms // 1000 for ms in waited] == [7, 3, 0]
