"""Databases for tests: a real PostgreSQL, and a fresh database with the schema for each test.

The server is the embedded one, the same that a new user gets, or the one that
HOWDAH_TEST_DSN names (`make test-matrix`). Each run has one template database. Copying it takes
about 20 ms.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg

from howdah import SyncQueue
from howdah.embedded import join
from tests.support.database import GUARD


def with_database(dsn: str, name: str) -> str:
    """Return the DSN of another database on the same server."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


@contextmanager
def server_for_tests(home: Path) -> Generator[str]:
    """Yield the DSN of a server for this test run; parallel test processes share the home."""
    if dsn := os.environ.get("HOWDAH_TEST_DSN"):
        yield dsn
        return
    with join(home) as server:
        dsn = with_database(server.dsn, "postgres")
        _wait_for_no_disk(dsn)
        yield dsn


def _wait_for_no_disk(dsn: str) -> None:
    """Let commits not wait for the disk: nobody crashes this server, and tests end far sooner."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter system set synchronous_commit = off")
        connection.execute("select pg_reload_conf()")


class Databases:
    """Makes and drops databases on one server."""

    def __init__(self, server_dsn: str) -> None:
        self.server_dsn = server_dsn
        self._guarded_template: str | None = None
        self._made: list[str] = []
        self._make_template()

    def _make_template(self) -> None:
        self._day = datetime.now(UTC).date()
        self._template = f"howdah_template_{secrets.token_hex(4)}"
        self._guarded_template = None
        with SyncQueue(self.create_empty(self._template)) as queue:
            queue.install()

    def _template_of_today(self) -> str:
        """Return the template; after midnight a new one, because each day has its partitions."""
        if not self.made_today:
            self._make_template()
        return self._template

    @property
    def made_today(self) -> bool:
        """Whether the databases that were made so far have the partitions of today."""
        return self._day == datetime.now(UTC).date()

    def create(self) -> str:
        """Make a database with the schema; returns its DSN."""
        return self._create(f"template {self._template_of_today()}")

    def create_guarded(self) -> str:
        """Make a database with the schema and the guard of support/guard.sql; returns its DSN."""
        template = self._template_of_today()
        if self._guarded_template is None:
            name = f"{template}_guarded"
            dsn = self._create(f"template {template}", name)
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(GUARD.encode())
            self._guarded_template = name
        return self._create(f"template {self._guarded_template}")

    def create_empty(self, name: str | None = None) -> str:
        """Make a database without anything in it; returns its DSN."""
        return self._create("", name)

    def _create(self, clause: str, name: str | None = None) -> str:
        name = name or f"howdah_test_{secrets.token_hex(6)}"
        self._execute(f"create database {name} {clause}")
        self._made.append(name)
        return with_database(self.server_dsn, name)

    def drop(self, dsn: str) -> None:
        name = urlsplit(dsn).path.lstrip("/")
        self._execute(f"drop database if exists {name} with (force)")
        self._made.remove(name)

    def drop_all(self) -> None:
        for name in list(self._made):
            self.drop(with_database(self.server_dsn, name))

    def _execute(self, sql: str) -> None:
        with psycopg.connect(self.server_dsn, autocommit=True) as connection:
            connection.execute(sql.encode())


@contextmanager
def away(databases: Databases, dsn: str) -> Generator[None]:
    """End every session of a database, and rename it while the block runs."""
    name = urlsplit(dsn).path.lstrip("/")
    with psycopg.connect(databases.server_dsn, autocommit=True) as server:

        def rename(old: str, new: str) -> None:
            for _ in range(5):  # a client may reconnect in between
                server.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s",
                    [old],
                )
                with suppress(psycopg.errors.ObjectInUse):
                    server.execute(f"alter database {old} rename to {new}".encode())
                    return
            raise AssertionError(f"{old} could not be renamed: clients kept reconnecting")

        rename(name, f"{name}_away")
        try:
            yield
        finally:
            rename(f"{name}_away", name)
