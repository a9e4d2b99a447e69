"""Two or three sessions meet at one job, in every order: as if they had come one by one.

The first does its act and keeps its transaction open; the others come while it is under way and
either stand at its lock or pass by; then the first commits, or changes its mind. Nobody hears an
error, except that a verb with a lease, meeting a plain UPDATE that carries the job off, may hear
40001 and is then sent again, as the worker does.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from itertools import permutations

import psycopg
import pytest

from tests.races.acts import ACTS, PLAIN, SURVIVING, WAITS_FOR, Scene, left, set_the_scene
from tests.races.orders import Orders, Outcome
from tests.support import Database, Session
from tests.support.aside import Aside
from tests.support.database import DEADLINE
from tests.support.databases import Databases

pytestmark = pytest.mark.engine


class Stage:
    """A database with three sessions, and what is known about orders without a race."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.orders = Orders(db)
        self.sessions = [db.session() for _ in range(3)]
        self.sent_again: list[str] = []
        self.waited: list[str] = []

    def perform(self, stage: str, acts: Sequence[str], *, commit: bool) -> Outcome:
        """Let all act at once; the answer of a first that changed its mind does not count."""
        scene = set_the_scene(self.db, stage)
        self.sent_again, self.waited = [], []
        first, *others = self.sessions[: len(acts)]
        with first.transaction() if commit else first.rolled_back():
            answers = {acts[0]: ACTS[acts[0]](first, scene)}
            under_way = {
                act: self._come(session, act, scene)
                for session, act in zip(others, acts[1:], strict=True)
            }
        answers |= {act: aside.result() for act, aside in under_way.items()}
        if not commit:
            del answers[acts[0]]
        return Outcome(answers, left(self.db))

    def _come(self, session: Session, act: str, scene: Scene) -> Aside[object]:
        """Begin an act; returns once it is over, or stands at a lock."""
        aside = Aside(lambda: self._send(session, act, scene))
        until = time.monotonic() + DEADLINE
        while not (aside.over or self.db.blocked_by_a_lock(session)):
            assert time.monotonic() < until, f"{act} neither ended nor came to a lock"
            time.sleep(0.001)
        if not aside.over:
            self.waited.append(act)
        return aside

    def _send(self, session: Session, act: str, scene: Scene) -> object:
        try:
            return ACTS[act](session, scene)
        except psycopg.errors.SerializationFailure:
            self.sent_again.append(act)
            return ACTS[act](session, scene)

    def check(self, stage: str, acts: Sequence[str], *, commit: bool) -> None:
        raced = self.perform(stage, acts, commit=commit)
        how = f"{stage}: {', '.join(acts)}, {'committed' if commit else 'rolled back'}"
        assert self.orders.explain(stage, raced) is not None, f"{how} came to {raced}"
        for act in set(self.waited) & set(WAITS_FOR):
            assert WAITS_FOR[act] & set(acts), f"{how}: {act} waited"
        for act in self.sent_again:
            assert act not in SURVIVING, f"{how}: {act} heard 40001"
            assert any(other in PLAIN for other in acts if other != act), f"{how}: 40001"


@pytest.fixture(scope="module")
def stage(databases: Databases) -> Generator[Stage]:
    made = databases.create()
    db = Database(made)
    yield Stage(db)
    db.close()
    databases.drop(made)


# What can be done to a job at a stage, or is often tried there.
LIVE = [act for act in ACTS if act not in ("requeue", "promote", "prune")]
TRIED = {
    "held": [*LIVE, "requeue"],
    "last attempt": [*(act for act in LIVE if act != "beat"), "requeue"],
    "running": ["start", "progress", "complete", "retry", "cancel", "recover", *PLAIN],
    "in line": ["claim", "cancel", "requeue", "complete", "retry", "watch", *PLAIN],
    "due": ["promote", "claim", "cancel", "watch"],
    "failed": ["requeue", "claim", "cancel", "retry", "watch", "plain complete", "plain fail"],
    "old": ["prune", "requeue", "cancel", "watch", "plain complete"],
    "old, unprepared": ["prune", "requeue", "cancel", "watch", "plain complete"],
}
PAIRS = [(at, one, two) for at, acts in TRIED.items() for one, two in permutations(acts, 2)]


@pytest.mark.parametrize(("at", "one", "two"), PAIRS)
def test_two_at_once_are_as_one_after_the_other(stage: Stage, at: str, one: str, two: str) -> None:
    stage.check(at, [one, two], commit=True)
    stage.check(at, [one, two], commit=False)


THREE = ["claim", "complete", "retry", "cancel", "recover", "plain complete", "plain recover"]


@pytest.mark.parametrize("first", THREE)
def test_three_at_once_are_as_one_after_the_other(stage: Stage, first: str) -> None:
    for second, third in permutations([act for act in THREE if act != first], 2):
        stage.check("held", [first, second, third], commit=True)
        stage.check("held", [first, second, third], commit=False)


REVIVING = ["requeue", "claim", "cancel", "prune", "watch"]


@pytest.mark.parametrize("first", REVIVING)
def test_three_meet_at_a_job_whose_day_is_over(stage: Stage, first: str) -> None:
    for second, third in permutations([act for act in REVIVING if act != first], 2):
        stage.check("old", [first, second, third], commit=True)
