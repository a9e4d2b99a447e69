"""Full disk: not a byte is left, for the data or for the WAL, until somebody makes room."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg

from tests.stories.disk import Disk
from tests.stories.history import Fault
from tests.stories.story import Story

SECONDS = 3.0
DEADLINE = 60.0

# What needs room where, so that the server is sure to notice.
NEEDS_ROOM = {
    "data": "create table ballast_{} as select repeat('x', 1000) from generate_series(1, 2000)",
    "WAL": "select pg_logical_emit_message(false, 'ballast', repeat('x', 1000000 + {}))",
}


def full_disk(disk: Disk, what: str) -> Callable[[Story], Fault]:
    """Fill the disk that holds the data, or the WAL; then make room and start what has ended."""

    def fill(story: Story) -> Fault:
        began = time.monotonic()
        disk.fill()
        _until_refused(story, NEEDS_ROOM[what])
        time.sleep(SECONDS)
        disk.free()
        if not story.server.alive:  # without room for WAL a server cannot go on, nor recover
            story.server.start(wait=False)
        story.server.wait_until_ready()
        name = f"disk full, {what}"
        return Fault(name, began, time.monotonic(), silences_all=True, crash=True)

    fill.__name__ = f"full_disk_{what}"
    return fill


def _until_refused(story: Story, sql: str) -> None:
    """Write until the server has no room for it; without room for WAL it ends altogether."""
    until = time.monotonic() + DEADLINE
    with suppress(psycopg.OperationalError), story.server.connect() as connection:
        for n in itertools.count():
            assert time.monotonic() < until, "the disk is full and nobody minds"
            connection.execute(sql.format(n).encode())
