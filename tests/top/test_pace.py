"""Looking costs next to nothing: at most a fiftieth of the time, whatever it takes."""

from __future__ import annotations

import pytest

from howdah import Queue
from howdah.store import query
from howdah.top.heart import Heart
from howdah.top.pace import Pace


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def warm(clock: Clock, share: float = 1.0) -> Pace:
    """A pace whose first look, which does not count, is over."""
    pace = Pace(share, 1.0, clock)
    pace.looked(100)
    clock.now += 1
    return pace


def test_the_first_look_is_due_at_once_and_connects_for_free(clock: Clock) -> None:
    pace = Pace(1, 1.0, clock)
    assert pace.wait == 0
    pace.looked(100)
    assert pace.wait == 1


def test_quick_looks_come_once_a_second(clock: Clock) -> None:
    pace = warm(clock)
    pace.looked(0.001)
    assert pace.wait == 1


@pytest.mark.parametrize("took", [0.03, 0.5, 7])
def test_a_slow_look_is_followed_by_fifty_times_its_length(clock: Clock, took: float) -> None:
    pace = warm(clock)
    pace.looked(took)
    assert pace.wait == pytest.approx(50 * took)


def test_with_a_share_of_the_time_it_pauses_longer(clock: Clock) -> None:
    pace = warm(clock, share=0.1)
    pace.looked(0.1)
    assert pace.wait == pytest.approx(50)


def test_one_hiccup_does_not_stop_the_picture_and_is_paid_for_all_the_same(clock: Clock) -> None:
    pace, busy, began = warm(clock), 0.0, clock.now
    for n in range(200):
        took = 1.0 if n % 20 == 7 else 0.002
        clock.now += took
        busy += took
        pace.looked(took)
        assert pace.wait < 50
        clock.now += pace.wait
    assert busy / (clock.now - began) <= 0.02


def test_who_asks_need_not_wait(clock: Clock) -> None:
    pace = warm(clock)
    pace.looked(7)
    pace.hurry()
    assert pace.wait == 0


@pytest.mark.parametrize("cost", [0.0005, 0.01, 0.3])
async def test_all_parts_together_take_less_than_two_percent(
    queue: Queue, cost: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look keeps the database busy for so long here, by a clock that only the pauses move."""
    monkeypatch.setattr(query, "LEAST", cost)
    waited = 0.0
    heart = Heart(queue.store, lambda: waited)
    await heart.look(True)  # the first does not count
    with query.spending() as spent:
        for _ in range(150):
            waited += heart.wait(True)
            await heart.look(True)
    waited += heart.wait(True)
    assert spent.seconds >= 150 * cost
    assert spent.seconds / waited <= 0.02


async def test_failures_are_looked_at_only_while_they_are_shown(queue: Queue) -> None:
    heart = Heart(queue.store)
    assert (await heart.look(False)).failures is None
    assert (await heart.look(True)).failures is not None
