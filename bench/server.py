"""Server: start a private PostgreSQL for the run, with a new database for every measurement.

It is howdah's embedded server, with settings for a machine that does nothing else. Its programs
come from the wheel, or from the folder that `--server` names. The cluster is kept below .bench/,
one per folder of programs, so the next run starts at once.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString, cast
from urllib.parse import urlsplit, urlunsplit

import psycopg

from bench.install import WORK_FOLDER
from howdah.embedded import Server, join

SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "fsync": "on",
    "synchronous_commit": "on",
    "max_connections": "300",  # 16 worker processes at once
}
QUIET_WITHIN = 120.0
POLL = 0.02
REST = 0.3  # seconds after the last background work
AUTOVACUUM_WORKERS = "select 1 from pg_stat_activity where backend_type = 'autovacuum worker'"


class NotQuiet(Exception):
    """A server did not come to rest."""


class Postgres:
    """A running server."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    @contextmanager
    def database(self) -> Generator[str]:
        """Create a database for one measurement, and yield its DSN."""
        name = f"bench_{secrets.token_hex(6)}"
        self._execute(f"create database {name}")
        try:
            yield with_database(self._dsn, name)
        finally:
            self._execute(f"drop database {name} with (force)")

    def checkpoint(self) -> None:
        """Leave no work to the checkpointer, so that all measurements begin alike."""
        self._execute("checkpoint")

    def make_quiet(self, dsn: str, *, vacuum: bool) -> None:
        """Do the background work that is due now, and wait until none is left.

        `vacuum` is for tables that have been filled. Tables that are still empty are left as they
        are, because statistics that say "empty" would mislead the planner as soon as they fill.
        """
        if vacuum:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute("vacuum (analyze)")
        self.checkpoint()
        self._wait_for_autovacuum()
        time.sleep(REST)

    def _wait_for_autovacuum(self) -> None:
        deadline = time.monotonic() + QUIET_WITHIN
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while connection.execute(AUTOVACUUM_WORKERS).fetchall():
                if time.monotonic() > deadline:
                    raise NotQuiet(f"autovacuum was still at work after {QUIET_WITHIN:.0f} s")
                time.sleep(POLL)

    def version(self) -> str:
        return self._rows("show server_version")[0][0]

    def settings(self) -> dict[str, str]:
        """Return every setting that differs from PostgreSQL's default."""
        rows = self._rows(
            "select name, current_setting(name) from pg_settings"
            " where source not in ('default', 'override', 'client')"
            " and category !~ 'Client|Connection|Reporting|Locations' order by name"
        )
        ours = {name: self._rows(f"show {name}")[0][0] for name in SETTINGS}
        return {row[0]: row[1] for row in rows} | ours

    def apply(self) -> bool:
        """Write the settings to the server's configuration; return whether it has to restart."""
        before = {name: self._rows(f"show {name}")[0][0] for name in SETTINGS}
        for name, value in SETTINGS.items():
            if name != "fsync":  # the embedded server sets it
                self._execute(f"alter system set {name} = '{value}'")
        return before != SETTINGS

    def _execute(self, sql: str) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(cast(LiteralString, sql))

    def _rows(self, sql: str) -> list[tuple[str, ...]]:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            return connection.execute(cast(LiteralString, sql)).fetchall()


def with_database(dsn: str, name: str) -> str:
    """Return the DSN of another database on the same server."""
    return urlunsplit(urlsplit(dsn)._replace(path=f"/{name}"))


@contextmanager
def private_postgres(binaries: str) -> Generator[Postgres]:
    """Start a server from `binaries`, a folder or "embedded", with the settings of the run."""
    if binaries != "embedded":
        os.environ["HOWDAH_PG_BIN"] = binaries
    key = hashlib.sha256(binaries.encode()).hexdigest()[:8]
    home = WORK_FOLDER / f"pg-{key}"
    home.parent.mkdir(exist_ok=True)
    with _with_settings(home) as server:
        yield Postgres(_dsn_of(server))


class RestartablePostgres(Postgres):
    """A server of its own, which can be away for a while."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._server = _with_settings(home)
        super().__init__(_dsn_of(self._server))

    def stop(self) -> None:
        """Stop the server: its sessions are cut off, and what is committed stays."""
        self._server.stop()

    def start(self) -> None:
        self._server = join(self._home)


@contextmanager
def restartable_postgres() -> Generator[RestartablePostgres]:
    """Start a server with an empty cluster, from the programs of the run."""
    with tempfile.TemporaryDirectory(prefix="bench-restart-") as home:
        postgres = RestartablePostgres(Path(home))
        try:
            yield postgres
        finally:
            postgres.stop()


def _with_settings(home: Path) -> Server:
    """Start a server, and give it the settings of the run."""
    server = join(home)
    if Postgres(_dsn_of(server)).apply():
        server.stop()
        return join(home)
    return server


def _dsn_of(server: Server) -> str:
    return with_database(server.dsn, "postgres")
