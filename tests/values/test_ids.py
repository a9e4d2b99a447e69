"""Ids are version 7, rise within a process, and never repeat."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from howdah.store import ids
from howdah.store.ids import new_id


def test_ids_rise_and_contain_their_time() -> None:
    before = time.time_ns() // 1_000_000
    new_ids = [new_id() for _ in range(5000)]
    after = time.time_ns() // 1_000_000
    assert new_ids == sorted(set(new_ids))
    assert {id.version for id in new_ids} == {7}
    assert before <= new_ids[0].int >> 80 <= new_ids[-1].int >> 80 <= after + 1


def test_threads_never_make_the_same_id() -> None:
    with ThreadPoolExecutor(8) as threads:
        new_ids = [f.result() for f in [threads.submit(new_id) for _ in range(20_000)]]
    assert len(set(new_ids)) == 20_000


def test_a_clock_that_goes_back_does_not_make_ids_go_back(monkeypatch: pytest.MonkeyPatch) -> None:
    first = new_id()
    monkeypatch.setattr(ids.time, "time_ns", lambda: 0)
    assert new_id() > first
