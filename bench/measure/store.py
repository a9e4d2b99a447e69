"""Store: the empty store of one measurement: a new database of PostgreSQL, or an emptied Redis.

The questions that the benchmark asks of a database go through one connection that stays open, and
the CPU time of its backend does not count. Statements are not prepared, because their plans would
be those of an empty table.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString, Protocol, cast

import psycopg

from bench.cpu_time import postmaster_of, seconds_of_tree
from bench.install import Unavailable
from bench.peer import Command, Peer
from bench.redis import Redis
from bench.server import Postgres

WAL = "select (pg_current_wal_insert_lsn() - '0/0')::bigint"


class Store(Protocol):
    @property
    def address(self) -> str: ...
    def make_quiet(self, *, vacuum: bool) -> None: ...
    def count(self, question: str | tuple[Command, ...]) -> int: ...
    def cpu_seconds(self, parents: dict[int, int] | None = None) -> float: ...
    def wal_bytes(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class PostgresStore:
    address: str
    server: Postgres
    connection: psycopg.Connection
    postmaster: int

    def make_quiet(self, *, vacuum: bool) -> None:
        self.server.make_quiet(self.address, vacuum=vacuum)

    def count(self, question: str | tuple[Command, ...]) -> int:
        assert isinstance(question, str)
        row = self.connection.execute(cast(LiteralString, question)).fetchone()
        assert row is not None
        return int(row[0])

    def cpu_seconds(self, parents: dict[int, int] | None = None) -> float:
        benchmark = [self.connection.info.backend_pid]
        return seconds_of_tree(self.postmaster, parents=parents, without=benchmark)

    def wal_bytes(self) -> int:
        return self.count(WAL)


@dataclass(frozen=True, slots=True)
class RedisStore:
    address: str
    server: Redis

    def make_quiet(self, *, vacuum: bool) -> None:
        self.server.make_quiet()

    def count(self, question: str | tuple[Command, ...]) -> int:
        assert isinstance(question, tuple)
        return self.server.count(question)

    def cpu_seconds(self, parents: dict[int, int] | None = None) -> float:
        return seconds_of_tree(self.server.pid, parents=parents)

    def wal_bytes(self) -> None:
        return None


@contextmanager
def empty_store(peer: Peer, postgres: Postgres, redis: Redis | None) -> Generator[Store]:
    """Yield an empty store of the kind that the peer needs."""
    if peer.store == "redis":
        if redis is None:
            raise Unavailable("it needs Redis, which is not running")
        redis.empty()
        yield RedisStore(str(redis.path), redis)
        return
    with (
        postgres.database() as dsn,
        psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection,
    ):
        yield PostgresStore(dsn, postgres, connection, postmaster_of(connection))
