"""Operator: somebody who changes rules while they are in use, and cancels jobs.

    python -m tests.stories.operator NAME SEED

It makes rules larger and smaller, with SQL and one statement at a time, and cancels jobs that wait
or run. It runs until SIGTERM. `set_first_rules` sets the rules of limited_jobs.py before any worker
registers them.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg

from tests.stories.history import OK, Log

CANCEL = """
    select howdah.cancel(array(
        select id from howdah.jobs where status in ('pending', 'claimed', 'running')
          and job_type = any (%s)
        order by random() limit 2), 'not needed')
"""
SET_LIMIT = "select howdah.set_limit(%s, %s, %s, '1 second', %s, %s)"
SET_TYPE_LIMIT = "select howdah.set_type_limit(%s, %s, %s, %s)"
CANCELLED = [
    "book",
    "post",
    "book_in_thread",
    "of_tenant",
    "call",
    "call_of_tenant",
    "rated",
    "once",
    "write",
    "write_in_thread",
    "write_in_order",
]

Statement = tuple[str, tuple[object, ...]]

FIRST_RULES: list[Statement] = [
    (SET_LIMIT, ("api", 3, None, None, False)),
    (SET_LIMIT, ("rated", None, 20, 2, False)),
    (SET_LIMIT, ("each", 2, 5, 1, True)),
    (SET_TYPE_LIMIT, ("book", 1, True, None)),
    (SET_TYPE_LIMIT, ("post", 1, True, None)),
    (SET_TYPE_LIMIT, ("book_in_thread", 1, True, None)),
    (SET_TYPE_LIMIT, ("write_in_order", 1, True, None)),
    (SET_TYPE_LIMIT, ("of_tenant", 2, False, None)),
    (SET_TYPE_LIMIT, ("call", None, False, "api")),
    (SET_TYPE_LIMIT, ("call_of_tenant", 2, False, "api")),
    (SET_TYPE_LIMIT, ("rated", None, False, "rated")),
    (SET_TYPE_LIMIT, ("rated_each", None, False, "each")),
]


def set_first_rules(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for sql, values in FIRST_RULES:
            connection.execute(sql.encode(), values)


class Operator:
    """Acts until SIGTERM."""

    def __init__(self, name: str, seed: int) -> None:
        self._log = Log(Path(os.environ["STORY_FOLDER"]), name)
        self._rng = random.Random(seed)
        self._stop = threading.Event()

    def run(self) -> None:
        signal.signal(signal.SIGTERM, self._on_sigterm)
        while not self._stop.is_set():
            try:
                with psycopg.connect(
                    os.environ["HOWDAH_DSN"],
                    autocommit=True,
                    connect_timeout=5,
                    target_session_attrs="read-write",
                ) as connection:
                    self._act_until_stopped(connection)
            except psycopg.Error:
                self._stop.wait(0.2)

    def _on_sigterm(self, number: int, frame: FrameType | None) -> None:
        self._stop.set()

    def _act_until_stopped(self, connection: psycopg.Connection[Any]) -> None:
        while not self._stop.is_set():
            sql, values = self._statement()
            asked = self._log.ask("operate", sql=sql, values=values)
            connection.execute(sql.encode(), values)
            self._log.answer(asked, OK)
            self._stop.wait(self._rng.uniform(0.05, 1.0))

    def _statement(self) -> Statement:
        rng = self._rng
        match rng.randrange(8):
            case 0 | 1:
                return SET_LIMIT, ("api", rng.randint(1, 6), None, None, False)
            case 2:
                return SET_LIMIT, ("rated", None, rng.randint(8, 40), rng.randint(1, 5), False)
            case 3:
                each = rng.choice([None, 1, 2, 3]), rng.randint(4, 20), rng.randint(1, 4)
                return SET_LIMIT, ("each", *each, True)
            case 4:
                return SET_TYPE_LIMIT, ("of_tenant", rng.choice([1, 1, 2, 3, 5]), False, None)
            case 5:
                return SET_TYPE_LIMIT, ("call_of_tenant", rng.randint(1, 3), False, "api")
            case 6:
                limit = rng.choice([None, "api"])
                return SET_TYPE_LIMIT, ("book_in_thread", 1, True, limit)
            case _:
                return CANCEL, (CANCELLED,)


if __name__ == "__main__":
    Operator(sys.argv[1], int(sys.argv[2])).run()
