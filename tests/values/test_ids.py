"""Ids are version 7, rise within a process, and never repeat."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from howdah import ids
from howdah.ids import new_id


def test_ids_rise_and_carry_their_time() -> None:
    before = time.time_ns() // 1_000_000
    made = [new_id() for _ in range(5000)]
    after = time.time_ns() // 1_000_000
    assert made == sorted(set(made))
    assert {id.version for id in made} == {7}
    assert before <= made[0].int >> 80 <= made[-1].int >> 80 <= after + 1


def test_threads_never_make_the_same_id() -> None:
    with ThreadPoolExecutor(8) as threads:
        made = [f.result() for f in [threads.submit(new_id) for _ in range(20_000)]]
    assert len(set(made)) == 20_000


def test_a_clock_that_goes_back_does_not_make_ids_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_id()
    monkeypatch.setattr(ids.time, "time_ns", lambda: 0)
    assert new_id() > first
