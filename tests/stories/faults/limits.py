"""Limits: no connection is left, or an administrator has set short timeouts."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, nullcontext, suppress

import psycopg

from tests.stories.faults.terminate import ALL_BUT_US
from tests.stories.history import Fault
from tests.stories.story import Story

SECONDS = 2.0


def no_connection_left(story: Story) -> Fault:
    """Another client takes every connection of the server."""
    began = time.monotonic()
    with ExitStack() as taken:
        story.proxy.cut()
        while time.monotonic() < began + SECONDS:
            with suppress(psycopg.OperationalError):
                taken.enter_context(psycopg.connect(story.server.dsn(), connect_timeout=2))
    return Fault("connection limit reached", began, time.monotonic(), silences_all=True)


def _set_timeout(setting: str, value: str, *, locked: bool) -> Callable[[Story], Fault]:
    def limit(story: Story) -> Fault:
        began = time.monotonic()
        story.value(f"alter database {story.database} set {setting} = '{value}'")
        story.value(ALL_BUT_US)  # a setting counts for new sessions
        with _locked_table(story) if locked else nullcontext():
            time.sleep(SECONDS)
        story.value(f"alter database {story.database} reset {setting}")
        story.value(ALL_BUT_US)
        return Fault(f"{setting} = {value}", began, time.monotonic(), silences_all=True)

    limit.__name__ = setting
    return limit


@contextmanager
def _locked_table(story: Story) -> Generator[None]:
    """Lock the table, so that statements wait and time out."""
    with story.server.connect(story.database) as session, session.transaction():
        session.execute("lock table howdah.jobs in share row exclusive mode")
        yield


statement_timeout = _set_timeout("statement_timeout", "20ms", locked=True)
lock_timeout = _set_timeout("lock_timeout", "10ms", locked=True)
idle_in_transaction = _set_timeout("idle_in_transaction_session_timeout", "1ms", locked=False)
