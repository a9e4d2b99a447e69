"""A pause before a retry doubles up to its limit, and starts again after a success."""

from __future__ import annotations

from howdah.growing_pause import GrowingPause


def test_a_pause_doubles_up_to_its_limit() -> None:
    pause = GrowingPause(0.5, 5.0)
    assert [pause.next() for _ in range(6)] == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]


def test_a_reset_pause_starts_again() -> None:
    pause = GrowingPause(0.1, 5.0)
    pause.next()
    pause.next()
    pause.reset()
    assert [pause.next(), pause.next()] == [0.1, 0.2]


def test_a_pause_never_overflows() -> None:
    pause = GrowingPause(0.1, 5.0)
    assert [pause.next() for _ in range(5000)][-1] == 5.0
