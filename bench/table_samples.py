"""Table samples: dead rows and sizes of all tables, and what the server's sessions do, over time.

A thread with a connection of its own reads them once a second. It reads the sessions more often,
and keeps how many of them were active on average: by statement, and by what they waited for. While
the server is away there are no samples.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg

INTERVAL = 1.0  # seconds
LOOKS = 5  # at the sessions in each interval

_TABLES = """
    select s.relname, s.n_dead_tup, s.n_tup_upd + s.n_tup_del, c.relname,
           coalesce(pg_relation_size(c.oid), 0)
    from pg_stat_user_tables as s
    join pg_class as c
      on c.oid = s.relid or c.oid in (select indexrelid from pg_index where indrelid = s.relid)
"""
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
class TableSample:
    """One table at one time."""

    name: str
    dead_rows: int
    changes: int  # rows updated or deleted up to now: 0 for a log, whose rows stay as they are
    sizes: dict[str, int]  # bytes of the table and of each of its indexes

    @property
    def table_bytes(self) -> int:
        return self.sizes.get(self.name, 0)

    @property
    def index_bytes(self) -> int:
        return sum(self.sizes.values()) - self.table_bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """What was read at one moment."""

    at_ns: int
    tables: dict[str, TableSample]
    waits: dict[str, float]  # active sessions on average, by what they waited for
    statements: dict[str, float]  # the same, by statement


@dataclass(slots=True)
class Sampler:
    """Takes samples in a thread."""

    dsn: str
    samples: list[Sample] = field(default_factory=list[Sample])
    _stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self._stop.is_set():
            with suppress(psycopg.OperationalError):  # the server is away
                self._sample_again_and_again()
            self._stop.wait(INTERVAL / LOOKS)

    def _sample_again_and_again(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
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
        return Sample(
            at_ns=time.monotonic_ns(),
            tables=_tables(connection),
            waits={name: count / LOOKS for name, count in waits.items()},
            statements={name: count / LOOKS for name, count in statements.items()},
        )


def _tables(connection: psycopg.Connection[Any]) -> dict[str, TableSample]:
    tables: dict[str, TableSample] = {}
    for name, dead_rows, changes, relation, size in connection.execute(_TABLES).fetchall():
        table = tables.setdefault(name, TableSample(name, dead_rows, changes, {}))
        table.sizes[relation] = size
    return tables


@contextmanager
def sampling(dsn: str) -> Generator[list[Sample]]:
    """Take samples of a database while the block runs."""
    sampler = Sampler(dsn)
    thread = threading.Thread(target=sampler.run, name="samples", daemon=True)
    thread.start()
    try:
        yield sampler.samples
    finally:
        sampler.stop()
        thread.join()
