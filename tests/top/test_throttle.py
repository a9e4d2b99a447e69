"""Polling takes at most a fiftieth of the time, however slow the database is."""

from __future__ import annotations

import pytest

from howdah import Queue
from howdah.store import query
from howdah.top.poller import Poller
from howdah.top.throttle import Throttle


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def after_first_poll(clock: Clock, share: float = 1.0) -> Throttle:
    """Return a throttle after its first poll, which does not count."""
    throttle = Throttle(share, 1.0, clock)
    throttle.record(100)
    clock.now += 1
    return throttle


def test_the_first_poll_is_due_at_once_and_does_not_count(clock: Clock) -> None:
    throttle = Throttle(1, 1.0, clock)
    assert throttle.wait == 0
    throttle.record(100)
    assert throttle.wait == 1


def test_fast_polls_run_once_a_second(clock: Clock) -> None:
    throttle = after_first_poll(clock)
    throttle.record(0.001)
    assert throttle.wait == 1


@pytest.mark.parametrize("took", [0.03, 0.5, 7])
def test_a_slow_poll_is_followed_by_fifty_times_its_length(clock: Clock, took: float) -> None:
    throttle = after_first_poll(clock)
    throttle.record(took)
    assert throttle.wait == pytest.approx(50 * took)


def test_with_a_share_of_the_time_it_pauses_longer(clock: Clock) -> None:
    throttle = after_first_poll(clock, share=0.1)
    throttle.record(0.1)
    assert throttle.wait == pytest.approx(50)


def test_one_slow_poll_does_not_freeze_the_view_but_still_counts(clock: Clock) -> None:
    throttle, busy, began = after_first_poll(clock), 0.0, clock.now
    for n in range(200):
        took = 1.0 if n % 20 == 7 else 0.002
        clock.now += took
        busy += took
        throttle.record(took)
        assert throttle.wait < 50
        clock.now += throttle.wait
    assert busy / (clock.now - began) <= 0.02


def test_a_poll_on_request_does_not_wait(clock: Clock) -> None:
    throttle = after_first_poll(clock)
    throttle.record(7)
    throttle.make_due()
    assert throttle.wait == 0


@pytest.mark.parametrize("cost", [0.0005, 0.01, 0.3])
async def test_all_parts_together_take_less_than_two_percent(
    queue: Queue, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each poll costs a fixed time here; only the pauses advance the clock."""
    monkeypatch.setattr(query, "MIN_COST", cost)
    waited = 0.0
    poller = Poller(queue.store, lambda: waited)
    await poller.poll(True)  # the first poll does not count
    with query.server_time() as spent:
        for _ in range(150):
            waited += poller.wait(True)
            await poller.poll(True)
    waited += poller.wait(True)
    assert spent.seconds >= 150 * cost
    assert spent.seconds / waited <= 0.02


async def test_failures_are_read_only_while_they_are_shown(queue: Queue) -> None:
    poller = Poller(queue.store)
    assert (await poller.poll(False)).failures is None
    assert (await poller.poll(True)).failures is not None
