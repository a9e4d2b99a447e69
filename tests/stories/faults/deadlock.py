"""Deadlock: jobs locked in the wrong order, beside others who cancel, recover and prune."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from tests.stories.fleet import LEASE
from tests.stories.history import Fault
from tests.stories.story import Story

SECONDS = 3.0
DEADLINE = 60.0

HELD = b"""
    select id from howdah.jobs where status in ('claimed', 'running') order by id desc limit 20
"""
TOUCH = b"update howdah.jobs set priority = priority where id = %s"
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
MEDDLING = (
    b"""select howdah.cancel(array(
            select id from howdah.jobs where job_type = 'quick' and status in ('pending', 'claimed')
            order by random() limit 2))""",
    b"select howdah.recover_stale_jobs()",
    b"select howdah.prune()",
)


def deadlocks(story: Story) -> Fault:
    """Go on until the server has had to resolve a deadlock."""
    story.start_long_jobs(LEASE)
    began, before = time.monotonic(), story.value(DEADLOCKS)
    stop = threading.Event()
    threads = [
        threading.Thread(target=_again_and_again, args=(story, stop, what))
        for what in (_touch_backwards, _touch_backwards, _meddle)
    ]
    for thread in threads:
        thread.start()
    try:
        while time.monotonic() < began + SECONDS or story.value(DEADLOCKS) == before:
            assert time.monotonic() < began + DEADLINE, "nobody ran into a deadlock"
            time.sleep(0.1)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return Fault("deadlocks, beside cancel, recover and prune", began, time.monotonic())


Use = Callable[["psycopg.Connection[Any]"], None]


def _again_and_again(story: Story, stop: threading.Event, use: Use) -> None:
    with story.server.connect(story.database) as connection:
        connection.execute("set deadlock_timeout = '50ms'")
        while not stop.is_set():
            with suppress(psycopg.OperationalError):  # lost a race, as somebody must
                use(connection)


def _touch_backwards(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        for row in connection.execute(HELD).fetchall():
            connection.execute(TOUCH, row)
            time.sleep(0.005)


def _meddle(connection: psycopg.Connection[Any]) -> None:
    for sql in MEDDLING:
        connection.execute(sql)
    time.sleep(0.05)
