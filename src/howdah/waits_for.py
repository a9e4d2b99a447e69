"""Waits for: what a pending job waits for, as a word for programs and in words for people.

In SQL  sql/80_observe/waits_for.sql
"""

from __future__ import annotations

from enum import StrEnum


class WaitsFor(StrEnum):
    """What a pending job waits for; a job in another state waits for nothing."""

    TIME = "time"  # it is not due
    RETRY = "retry"  # an attempt failed, and the next one is not due
    KEY = "key"  # a slot of its concurrency key
    LIMIT = "limit"  # its named limit
    WORKER = "worker"  # it is in line

    @property
    def words(self) -> str:
        """What comes after `waits for`."""
        return _WORDS[self]

    @property
    def plural(self) -> str:
        """The words about several jobs."""
        return self.words.replace("its ", "their ")


_WORDS = {
    WaitsFor.TIME: "its time",
    WaitsFor.RETRY: "its retry",
    WaitsFor.KEY: "a slot of its key",
    WaitsFor.LIMIT: "its limit",
    WaitsFor.WORKER: "a worker",
}
