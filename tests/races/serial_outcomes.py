"""Serial outcomes: a race may have only the outcomes that the same actions have one by one.

An `Outcome` is the answer of each action and the job afterwards. The allowed outcomes are those of
the same actions in some order, from the same starting state. An action that never waits
(`SKIPPING`) may also have found nothing. So may a plain UPDATE whose job changed its partition,
live or finished, while it waited: PostgreSQL does not follow the row.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import combinations, permutations
from typing import Any, NamedTuple

from tests.races.actions import ACTIONS, PLAIN, SKIPPING, describe_job, is_empty, is_live, set_up
from tests.support import Database


class Outcome(NamedTuple):
    answers: dict[str, object]  # by action
    job: tuple[Any, ...]


class SerialOutcomes:
    """Performs actions one after another, and caches the outcomes."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._cached: dict[tuple[str, ...], Outcome] = {}

    def outcome(self, start: str, actions: Sequence[str]) -> Outcome:
        """Perform the actions in this order, each in a transaction of its own."""
        key = (start, *actions)
        if key not in self._cached:
            setup = set_up(self._db, start)
            answers = {action: ACTIONS[action](self._db, setup) for action in actions}
            self._cached[key] = Outcome(answers, describe_job(self._db))
        return self._cached[key]

    def explain(self, start: str, raced: Outcome) -> tuple[str, ...] | None:
        """Find an order of the actions with this outcome; None where there is none."""
        for order in self._orders(start, raced):
            serial = self.outcome(start, order)
            answered = {action: raced.answers[action] for action in order}
            if (serial.answers, serial.job) == (answered, raced.job):
                return order
        return None

    def _orders(self, start: str, raced: Outcome) -> Generator[tuple[str, ...]]:
        changed_partition = is_live(self.outcome(start, ()).job) != is_live(raced.job)
        may_be_left_out = [
            action
            for action, answer in raced.answers.items()
            if is_empty(answer) and (action in SKIPPING or (action in PLAIN and changed_partition))
        ]
        for size in range(len(may_be_left_out) + 1):
            for skipped in combinations(may_be_left_out, size):
                yield from permutations(action for action in raced.answers if action not in skipped)
