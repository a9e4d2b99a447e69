"""Full disk: no byte is free for the data or for the WAL, until the disk is emptied."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from contextlib import suppress

import psycopg

from tests.stories.history import Fault
from tests.stories.small_disk import SmallDisk
from tests.stories.story import Story

SECONDS = 3.0
DEADLINE = 60.0

# Statements that need space on each disk, so that the server notices.
WRITES = {
    "data": "create table filler_{} as select repeat('x', 1000) from generate_series(1, 2000)",
    "WAL": "select pg_logical_emit_message(false, 'filler', repeat('x', 1000000 + {}))",
}


def full_disk(disk: SmallDisk, part: str) -> Callable[[Story], Fault]:
    """Fill the disk of the data or of the WAL; then empty it, and start the server if it ended."""

    def fill(story: Story) -> Fault:
        began = time.monotonic()
        disk.fill()
        _until_refused(story, WRITES[part])
        time.sleep(SECONDS)
        disk.free()
        if not story.server.alive:  # without space for WAL it stops, and cannot recover
            story.server.start(wait=False)
        story.server.wait_until_ready()
        name = f"disk full, {part}"
        return Fault(name, began, time.monotonic(), silences_all=True, crash=True)

    fill.__name__ = f"full_disk_{part}"
    return fill


def _until_refused(story: Story, sql: str) -> None:
    """Write until the server refuses; without space for WAL it stops."""
    until = time.monotonic() + DEADLINE
    with suppress(psycopg.OperationalError), story.server.connect() as connection:
        for n in itertools.count():
            assert time.monotonic() < until, "the server still writes, although the disk is full"
            connection.execute(sql.format(n).encode())
