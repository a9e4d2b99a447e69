"""Interleaving: run the statements of several sessions in every order.

A `Script` is a list of steps for one session. `orders` yields every order that keeps the steps of
each script in sequence. `run` performs one of them. A step that waits for a lock is left to wait,
and the steps behind it in its script follow when it is over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from tests.support import Database, Session
from tests.support.background import BackgroundCall
from tests.support.waiting import wait_until

Step = Callable[[Session], object]
Script = Sequence[Step]


def commit(session: Session) -> None:
    session.execute("commit")


def rollback(session: Session) -> None:
    session.execute("rollback")


def orders(lengths: Sequence[int]) -> Generator[list[int]]:
    """Yield every sequence of script numbers in which script n occurs lengths[n] times."""
    if not any(lengths):
        yield []
        return
    for number, length in enumerate(lengths):
        if length:
            rest = [left - (other == number) for other, left in enumerate(lengths)]
            for order in orders(rest):
                yield [number, *order]


class _Player:
    """One session with the steps that it still has to do."""

    def __init__(self, db: Database, session: Session) -> None:
        self._db = db
        self._session = session
        self._waiting: list[Step] = []
        self._call: BackgroundCall[object] | None = None

    def add(self, step: Step) -> None:
        self._waiting.append(step)
        self.go_on()

    def go_on(self) -> None:
        """Do what can be done now; returns when all is done, or a step waits for a lock."""
        while self._settled() and self._waiting:
            step = self._waiting.pop(0)
            self._call = BackgroundCall(lambda step=step: step(self._session))

    def _settled(self) -> bool:
        call = self._call
        if call is None:
            return True
        wait_until(
            lambda: call.over or self._db.blocked_by_a_lock(self._session),
            "the step has ended or waits for a lock",
            pause=0.0005,
        )
        if call.over:
            call.result()
            self._call = None
        return call.over

    @property
    def at_work(self) -> bool:
        return self._call is not None or bool(self._waiting)


def run(
    db: Database,
    sessions: Sequence[Session],
    scripts: Sequence[Script],
    order: Sequence[int],
    after_step: Callable[[], None],
) -> None:
    """Perform the scripts in this order; `after_step` may look at what is committed."""
    players = [_Player(db, session) for session in sessions[: len(scripts)]]
    position = [0] * len(scripts)
    for number in order:
        players[number].add(scripts[number][position[number]])
        position[number] += 1
        for player in players:
            player.go_on()
        after_step()
    while any(player.at_work for player in players):  # one may wait for what another still does
        for player in players:
            player.go_on()
    after_step()
