"""Rounds: let both sides do the same works again and again, taking turns.

Comes after   sides.py
Comes before  judge.py, which looks at each pair

A round of a work is four measurements, A B B A, and gives two pairs; the next round begins with the
other side. So neither a machine that grows slower nor a place in the order favours anybody. Each
side first does every work with a few jobs: Python compiles, and a commit that lacks what the driver
needs is found out before any time is spent on it. Works in doubt get further rounds while there
is time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import psycopg

from bench.measure import Wrong
from bench.peer import Plan
from bench.process import Broken
from bench.quick.judge import Compared, Pair
from bench.quick.sides import Side
from bench.server import Postgres

# Long enough that one measurement means something, short enough for many.
PLANS = {
    "enqueue_bulk": Plan(50_000),
    "enqueue_single": Plan(1_000),
    "drain_1": Plan(50_000),
    "pickup": Plan(60),
}
TRIAL_JOBS = 10
ROUNDS = 3  # of every work
MOST_ROUNDS = 8  # of a work in doubt
TIME = 150.0  # seconds after which no round begins


@dataclass(frozen=True, slots=True)
class Match:
    """Two sides on one server."""

    tree: Side
    commit: Side
    postgres: Postgres
    tell: Callable[[str], None]

    def pair(self, work: str, plan: Plan, tree_first: bool) -> Pair:
        taken: dict[Side, float] = {}
        for side in (self.tree, self.commit) if tree_first else (self.commit, self.tree):
            taken[side] = self.take(side, work, plan)
        return Pair(taken[self.tree], taken[self.commit])

    def take(self, side: Side, work: str, plan: Plan) -> float:
        try:
            return side.take(work, plan, self.postgres)
        except (Broken, Wrong, psycopg.Error) as problem:
            raise CannotDo(f"{side.title} cannot do it. {problem}") from problem


class CannotDo(Exception):
    """A side does not do a work: it lacks what the driver needs, or does it wrong."""


def compare(match: Match, plans: dict[str, Plan], seconds: float = TIME) -> list[Compared]:
    """Compare both sides in these works."""
    until = time.monotonic() + seconds
    found = {work: Compared(work) for work in plans}
    for work, plan in plans.items():
        _attempt(found[work], lambda: _trial(match, work, plan))  # noqa: B023 - called at once
    for number in range(MOST_ROUNDS):
        for work, plan in plans.items():
            compared = found[work]
            wanted = compared.in_doubt if number >= ROUNDS else compared.problem is None
            if wanted and (time.monotonic() < until or not compared.pairs):
                _attempt(compared, lambda: _round(match, compared, plan, number))  # noqa: B023
    return list(found.values())


def _attempt(compared: Compared, step: Callable[[], None]) -> None:
    try:
        step()
    except CannotDo as problem:
        compared.problem = str(problem)


def _trial(match: Match, work: str, plan: Plan) -> None:
    for side in (match.tree, match.commit):
        match.take(side, work, replace(plan, jobs=TRIAL_JOBS))


def _round(match: Match, compared: Compared, plan: Plan, number: int) -> None:
    tree_begins = number % 2 == 0
    for tree_first in (tree_begins, not tree_begins):
        compared.pairs.append(match.pair(compared.work, plan, tree_first))
    match.tell(compared.line)
