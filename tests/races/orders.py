"""Orders: what may come of several acts at once is what comes of them one after another.

An `Outcome` is everybody's answer and what is left of the job. The outcomes that a race may have
are those of the same acts in some order, performed on the same stage without any race. Whoever
never waits (`SKIPPING`) may also have found nothing, as if he had not come. So may a plain UPDATE
whose job was carried to the other side, live or finished, while it waited: PostgreSQL looks for
it no further.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import combinations, permutations
from typing import Any, NamedTuple

from tests.races.acts import ACTS, PLAIN, SKIPPING, is_live, left, nothing, set_the_scene
from tests.support import Database


class Outcome(NamedTuple):
    answers: dict[str, object]  # by act
    left: tuple[Any, ...]


class Orders:
    """Performs acts one after another, and remembers what came of them."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._known: dict[tuple[str, ...], Outcome] = {}

    def outcome(self, stage: str, acts: Sequence[str]) -> Outcome:
        """Perform the acts in this order, each in a transaction of its own."""
        key = (stage, *acts)
        if key not in self._known:
            scene = set_the_scene(self._db, stage)
            answers = {act: ACTS[act](self._db, scene) for act in acts}
            self._known[key] = Outcome(answers, left(self._db))
        return self._known[key]

    def explain(self, stage: str, raced: Outcome) -> tuple[str, ...] | None:
        """Find an order of the acts with this outcome; None where there is none."""
        for order in self._orders(stage, raced):
            found = self.outcome(stage, order)
            answered = {act: raced.answers[act] for act in order}
            if (found.answers, found.left) == (answered, raced.left):
                return order
        return None

    def _orders(self, stage: str, raced: Outcome) -> Generator[tuple[str, ...]]:
        crossed = is_live(self.outcome(stage, ()).left) != is_live(raced.left)
        may_be_left_out = [
            act
            for act, answer in raced.answers.items()
            if nothing(answer) and (act in SKIPPING or (act in PLAIN and crossed))
        ]
        for size in range(len(may_be_left_out) + 1):
            for out in combinations(may_be_left_out, size):
                yield from permutations(act for act in raced.answers if act not in out)
