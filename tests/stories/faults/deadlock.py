"""Deadlock: sessions lock jobs in the wrong order, and others cancel, recover and prune."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from tests.stories.history import Fault
from tests.stories.story import Story
from tests.support.fleet import LEASE
from tests.support.waiting import wait_until

SECONDS = 3.0
DEADLINE = 60.0

HELD = b"""
    select id from howdah.jobs where status in ('claimed', 'running') order by id desc limit 20
"""
TOUCH = b"update howdah.jobs set priority = priority where id = %s"
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
OTHER_CALLS = (
    b"""select howdah.cancel(array(
            select id from howdah.jobs where job_type = 'quick' and status in ('pending', 'claimed')
            order by random() limit 2))""",
    b"select howdah.recover_stale_jobs()",
    b"select howdah.prune()",
)


def deadlocks(story: Story) -> Fault:
    """Continue until the server has resolved a deadlock."""
    story.start_long_jobs(LEASE)
    began, before = time.monotonic(), story.value(DEADLOCKS)
    stop = threading.Event()
    threads = [
        threading.Thread(target=_repeat, args=(story, stop, call))
        for call in (_lock_backwards, _lock_backwards, _call_others)
    ]
    for thread in threads:
        thread.start()
    try:
        time.sleep(SECONDS)
        wait_until(
            lambda: story.value(DEADLOCKS) > before,
            "the server has resolved a deadlock",
            deadline=DEADLINE,
            pause=0.1,
        )
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    return Fault("deadlocks, beside cancel, recover and prune", began, time.monotonic())


Use = Callable[["psycopg.Connection[Any]"], None]


def _repeat(story: Story, stop: threading.Event, use: Use) -> None:
    with story.server.connect(story.database) as connection:
        connection.execute("set deadlock_timeout = '50ms'")
        while not stop.is_set():
            with suppress(
                psycopg.OperationalError
            ):  # the server ended this one to resolve a deadlock
                use(connection)


def _lock_backwards(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        for row in connection.execute(HELD).fetchall():
            connection.execute(TOUCH, row)
            time.sleep(0.005)


def _call_others(connection: psycopg.Connection[Any]) -> None:
    for sql in OTHER_CALLS:
        connection.execute(sql)
    time.sleep(0.05)
