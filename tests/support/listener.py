"""Listener: a session that receives NOTIFY, and knows when it has received everything."""

from __future__ import annotations

from typing import NamedTuple
from uuid import uuid4

from psycopg import Notify

from tests.support.database import Database
from tests.support.waiting import wait_until

MARKER = "howdah_tests_marker"


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
        for channel in ("howdah_wake", "howdah_news", MARKER):
            self._session.execute(f"listen {channel}")

    def _hear(self, note: Notify) -> None:
        self._heard.append(Heard(note.channel, note.payload))

    def sleep(self) -> None:
        """Take the shared lock that an idle worker holds."""
        self._session.execute("select pg_advisory_lock_shared(howdah.lock_space(), 1)")

    def wake_up(self) -> None:
        self._session.execute("select pg_advisory_unlock_shared(howdah.lock_space(), 1)")

    def heard(self) -> list[Heard]:
        """Return the notifications since the last call.

        Notifications arrive in the order of their commits. So this sends a marker, and everything
        that arrived before the marker is complete.
        """
        marker = Heard(MARKER, str(uuid4()))
        self._db.execute("select pg_notify(%s, %s)", *marker)
        wait_until(lambda: self._received(marker), "the marker is received", pause=0)
        at = self._heard.index(marker)
        notifications, self._heard = self._heard[:at], self._heard[at + 1 :]
        return notifications

    def _received(self, marker: Heard) -> bool:
        self._session.value("select 1")  # psycopg reads notifications with an answer
        return marker in self._heard
