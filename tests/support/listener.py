"""Listener: somebody who hears notifications, and knows when there is nothing more to hear."""

from __future__ import annotations

import time
from typing import NamedTuple
from uuid import uuid4

from psycopg import Notify

from tests.support.database import DEADLINE, Database

FENCE = "howdah_tests_fence"


class Heard(NamedTuple):
    channel: str
    payload: str


class Listener:
    """A session that listens to both of howdah's channels."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._session = db.session()
        self._heard: list[Heard] = []
        self._session.connection.add_notify_handler(self._hear)
        for channel in ("howdah_wake", "howdah_news", FENCE):
            self._session.execute(f"listen {channel}")

    def _hear(self, note: Notify) -> None:
        self._heard.append(Heard(note.channel, note.payload))

    def sleep(self) -> None:
        """Fall asleep as an idle worker does: hold the shared lock."""
        self._session.execute("select pg_advisory_lock_shared(howdah.lock_space(), 1)")

    def wake_up(self) -> None:
        self._session.execute("select pg_advisory_unlock_shared(howdah.lock_space(), 1)")

    def heard(self) -> list[Heard]:
        """Tell what was notified since the last time.

        Notifications arrive in the order of their commits. So a fence of our own is sent, and
        what arrived before it is all there is.
        """
        fence = Heard(FENCE, str(uuid4()))
        self._db.execute("select pg_notify(%s, %s)", *fence)
        until = time.monotonic() + DEADLINE
        while fence not in self._heard:
            assert time.monotonic() < until, "the fence was never heard"
            self._session.value("select 1")
        at = self._heard.index(fence)
        told, self._heard = self._heard[:at], self._heard[at + 1 :]
        return told
