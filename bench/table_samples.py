"""Table samples: dead rows and sizes of jobs_live, and what the server's sessions do, over time.

A thread with a connection of its own reads them once a second. It reads the sessions more often,
and keeps how many of them were active on average: by statement, and by what they waited for.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from bench.testbed import Testbed

INTERVAL = 1.0  # seconds
LOOKS = 5  # at the sessions in each interval

_SIZES = """
    select c.relname, pg_relation_size(c.oid) from pg_class as c
    where c.oid = 'howdah.jobs_live'::regclass
       or c.oid in (select indexrelid from pg_index where indrelid = 'howdah.jobs_live'::regclass)
"""
_DEAD = "select n_dead_tup from pg_stat_all_tables where relid = 'howdah.jobs_live'::regclass"
_SESSIONS = r"""
    select coalesce(wait_event_type || ': ' || wait_event, 'CPU'),
           case when backend_type = 'autovacuum worker' then 'autovacuum'
                else coalesce(substring(query from 'howdah\.(?!async_commit)(\w+)\('),
                              split_part(query, ' ', 1)) end
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()
      and (state = 'active' or backend_type = 'autovacuum worker')
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read at one moment."""

    at_ns: int
    dead_rows: int
    sizes: dict[str, int]  # bytes of the table and of each of its indexes
    waits: dict[str, float]  # active sessions on average, by what they waited for
    statements: dict[str, float]  # the same, by statement

    @property
    def table_bytes(self) -> int:
        return self.sizes["jobs_live"]

    @property
    def index_bytes(self) -> int:
        return sum(self.sizes.values()) - self.table_bytes


@dataclass(slots=True)
class Sampler:
    """Takes samples in a thread."""

    testbed: Testbed
    samples: list[Sample] = field(default_factory=list[Sample])
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        with self.testbed.connect() as connection:
            while not self._stop.is_set():
                self.samples.append(self._sample(connection))

    def stop(self) -> None:
        self._stop.set()

    def _sample(self, connection: psycopg.Connection[Any]) -> Sample:
        waits, statements = Counter[str](), Counter[str]()
        due = time.monotonic()
        for _ in range(LOOKS):
            due += INTERVAL / LOOKS
            self._stop.wait(max(0.0, due - time.monotonic()))
            for wait, statement in connection.execute(_SESSIONS).fetchall():
                waits[wait] += 1
                statements[statement] += 1
        dead = connection.execute(_DEAD).fetchone()
        return Sample(
            at_ns=time.monotonic_ns(),
            dead_rows=dead[0] if dead else 0,
            sizes=dict(connection.execute(_SIZES).fetchall()),
            waits={name: count / LOOKS for name, count in waits.items()},
            statements={name: count / LOOKS for name, count in statements.items()},
        )


@contextmanager
def sampling(testbed: Testbed) -> Generator[list[Sample]]:
    """Take samples while the block runs."""
    sampler = Sampler(testbed)
    thread = threading.Thread(target=sampler.run, name="samples", daemon=True)
    thread.start()
    try:
        yield sampler.samples
    finally:
        sampler.stop()
        thread.join()
