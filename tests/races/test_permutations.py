"""Two or three sessions act on one job, in every order: the outcome is that of some serial order.

The first session does its action and keeps its transaction open. The others begin meanwhile, and
wait for its lock or skip the job. Then the first commits or rolls back. No session gets an error,
with one exception: a verb with a lease that meets a plain UPDATE which moves the job to the other
partition may get 40001. It is sent again, as the worker does.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import permutations

import psycopg
import pytest

from tests.races.actions import ACTIONS, PLAIN, SURVIVING, WAITS_FOR, Setup, describe_job, set_up
from tests.races.serial_outcomes import Outcome, SerialOutcomes
from tests.support import Database, Session
from tests.support.background import BackgroundCall
from tests.support.databases import Databases
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engine


class Race:
    """A database with three sessions, and the outcomes of the serial orders."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.serial = SerialOutcomes(db)
        self.sessions = [db.session() for _ in range(3)]
        self.sent_again: list[str] = []
        self.waited: list[str] = []

    def perform(self, start: str, actions: Sequence[str], *, commit: bool) -> Outcome:
        """Run all actions at once; the answer of a first that is rolled back does not count."""
        setup = set_up(self.db, start)
        self.sent_again, self.waited = [], []
        first, *others = self.sessions[: len(actions)]
        with first.transaction() if commit else first.rolled_back():
            answers = {actions[0]: ACTIONS[actions[0]](first, setup)}
            under_way = {
                action: self._begin(session, action, setup)
                for session, action in zip(others, actions[1:], strict=True)
            }
        answers |= {action: call.result() for action, call in under_way.items()}
        if not commit:
            del answers[actions[0]]
        return Outcome(answers, describe_job(self.db))

    def _begin(self, session: Session, action: str, setup: Setup) -> BackgroundCall[object]:
        """Begin an action; returns when it has ended or waits for a lock."""
        call = BackgroundCall(lambda: self._send(session, action, setup))
        wait_until(
            lambda: call.over or self.db.blocked_by_a_lock(session),
            f"{action} has ended or waits for a lock",
            pause=0.001,
        )
        if not call.over:
            self.waited.append(action)
        return call

    def _send(self, session: Session, action: str, setup: Setup) -> object:
        try:
            return ACTIONS[action](session, setup)
        except psycopg.errors.SerializationFailure:
            self.sent_again.append(action)
            return ACTIONS[action](session, setup)

    def check(self, start: str, actions: Sequence[str], *, commit: bool) -> None:
        raced = self.perform(start, actions, commit=commit)
        case = f"{start}: {', '.join(actions)}, {'committed' if commit else 'rolled back'}"
        assert self.serial.explain(start, raced) is not None, f"{case} ended as {raced}"
        for action in set(self.waited) & set(WAITS_FOR):
            assert WAITS_FOR[action] & set(actions), f"{case}: {action} waited"
        for action in self.sent_again:
            assert action not in SURVIVING, f"{case}: {action} got 40001"
            assert any(other in PLAIN for other in actions if other != action), f"{case}: 40001"


@pytest.fixture(scope="module")
def race(databases: Databases) -> Generator[Race]:
    dsn = databases.create()
    db = Database(dsn)
    yield Race(db)
    db.close()
    databases.drop(dsn)


# The actions that are possible in a starting state, or are often tried in it.
LIVE = [action for action in ACTIONS if action not in ("requeue", "promote", "prune")]
TRIED = {
    "held": [*LIVE, "requeue"],
    "last attempt": [*(action for action in LIVE if action != "beat"), "requeue"],
    "running": ["start", "progress", "complete", "retry", "cancel", "recover", *PLAIN],
    "in line": ["claim", "cancel", "requeue", "complete", "retry", "watch", *PLAIN],
    "due": ["promote", "claim", "cancel", "watch"],
    "failed": ["requeue", "claim", "cancel", "retry", "watch", "plain complete", "plain fail"],
    "old": ["prune", "requeue", "cancel", "watch", "plain complete"],
    "old, unprepared": ["prune", "requeue", "cancel", "watch", "plain complete"],
}
PAIRS = [(start, *pair) for start, actions in TRIED.items() for pair in permutations(actions, 2)]


@pytest.mark.parametrize(("start", "first", "second"), PAIRS)
def test_two_concurrent_actions_have_a_serial_outcome(
    race: Race, start: str, first: str, second: str
) -> None:
    race.check(start, [first, second], commit=True)
    race.check(start, [first, second], commit=False)


THREE = ["claim", "complete", "retry", "cancel", "recover", "plain complete", "plain recover"]


@pytest.mark.parametrize("first", THREE)
def test_three_concurrent_actions_have_a_serial_outcome(race: Race, first: str) -> None:
    for second, third in permutations([action for action in THREE if action != first], 2):
        race.check("held", [first, second, third], commit=True)
        race.check("held", [first, second, third], commit=False)


REVIVING = ["requeue", "claim", "cancel", "prune", "watch"]


@pytest.mark.parametrize("first", REVIVING)
def test_three_concurrent_actions_on_an_expired_job_have_a_serial_outcome(
    race: Race, first: str
) -> None:
    for second, third in permutations([action for action in REVIVING if action != first], 2):
        race.check("old", [first, second, third], commit=True)
