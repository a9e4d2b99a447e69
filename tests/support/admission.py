"""Admission: what a history must show of keys, limits and rates, whoever recorded it.

Each function takes times and yields what broke the promise. tests/admit/history.py uses them for
threads and static rules, tests/stories/admit for processes, faults and rules that change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

ROUNDING = 1e-3  # of a start


class Span(NamedTuple, Generic[T]):
    """One job at work, from the time it began until before the time it ended."""

    began: float
    ended: float
    job: T


def together(spans: Iterable[Span[T]]) -> Iterator[list[Span[T]]]:
    """Yield which jobs were at work, each time that one more has begun; that one is the last."""
    at_work: list[Span[T]] = []
    for span in sorted(spans, key=lambda span: span.began):
        at_work = [other for other in at_work if other.ended > span.began]
        at_work.append(span)
        yield at_work


class Turn(NamedTuple, Generic[T]):
    """One job of an ordered key: when it was enqueued, and when it was at work."""

    asked: float  # its enqueue began
    answered: float  # its enqueue was acknowledged; infinite: nobody knows when
    began: float  # its first attempt
    ended: float  # its last attempt
    job: T


def overtaken(turns: Iterable[Turn[T]]) -> Iterator[tuple[Turn[T], Turn[T]]]:
    """Yield (first, second) where the second was enqueued later, and began too early.

    The enqueue of the first was acknowledged before that of the second began.
    """
    by_answer = sorted(turns, key=lambda turn: turn.answered)
    latest: Turn[T] | None = None  # of those enqueued before `turn`, the last to end
    known = 0
    for turn in sorted(by_answer, key=lambda turn: turn.asked):
        while known < len(by_answer) and by_answer[known].answered < turn.asked:
            if latest is None or by_answer[known].ended > latest.ended:
                latest = by_answer[known]
            known += 1
        if latest is not None and latest.ended > turn.began:
            yield latest, turn


class Start(NamedTuple):
    """One start under a rate."""

    earned: float  # how many starts the rate has allowed until then, counted from a fixed time
    burst: int  # the largest burst that was valid for it


def windows_with_too_many_starts(starts: Iterable[Start]) -> Iterator[tuple[int, int, float]]:
    """Yield (first, last, allowed): the numbers of the starts, and how many the rule allowed.

    The starts must be in the order of their times. A window between two of them may have as many
    as the rate allowed in it, and the largest burst that was valid for one of them.
    """
    # Where a window may begin: (burst, the least number that is not earned, its start). The
    # largest burst is first: it counts for every window that began before.
    begins: list[tuple[int, float, int]] = []
    for last, (earned, burst) in enumerate(starts):
        unearned = last - earned
        best = (unearned, last)
        while begins and begins[-1][0] <= burst:
            best = min(best, begins.pop()[1:])
        begins.append((burst, *best))
        for most, least, first in begins:
            if unearned - least + 1 > most + ROUNDING:
                yield first, last, most + (last - unearned) - (first - least)
                break
