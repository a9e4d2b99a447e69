"""Server: a PostgreSQL that belongs to a story, to be restarted, starved and failed over.

Speaks TCP on the loopback address, to which only who knows a password made for this server is let
in, and writes to disk before it answers, like any server people use. `crash` is what
`pg_ctl stop -m immediate` does: every process ends at once, and the next start recovers.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, LiteralString, Self, cast

import psutil
import psycopg

from howdah.embedded.binaries import find_binaries
from howdah.embedded.home import Home
from howdah.embedded.root import prepare

USER, DATABASE, STANDBY = "postgres", "postgres", "standby"
DEADLINE = 60.0
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "wal_level": "replica",
    "max_wal_senders": "4",
    "wal_keep_size": "256MB",
    "hot_standby": "on",
    "wal_retrieve_retry_interval": "200ms",
    "logging_collector": "off",
}
# The shell goes away and leaves the server behind, a child of nobody here.
DETACHED = 'log="$1"; shift; "$@" >>"$log" 2>&1 & echo $!'


class PgServer:
    """One cluster and the server on it."""

    def __init__(self, folder: Path, *, wal: Path | None = None, **settings: str) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self.folder = folder
        self.password = secrets.token_hex(8)
        self.settings = {**SETTINGS, **settings}
        self.port = free_port()
        self.log = folder / "server.log"
        who, home, self._binaries = prepare(Home(folder, room=folder), find_binaries())
        self._who = who.for_initdb()  # and for all else: these clusters live for a test
        self.data = home.pgdata
        self._wal = wal  # a folder of its own for the WAL, on another disk perhaps
        self._pid: int | None = None

    # ── life ──

    def make(self) -> Self:
        """Make the cluster."""
        word = self.folder / "password"
        word.write_text(self.password)
        self._who.give(word)
        self._run("initdb", *self._place(), "-U", USER, "-A", "scram-sha-256", "-E", "UTF8",
                  "--locale=C", f"--pwfile={word}", "--no-instructions")  # fmt: skip
        return self

    def follow(self, primary: PgServer) -> Self:
        """Become a standby of a running primary: copy it, and follow it once started."""
        assert not self.alive, "a server that runs cannot be made anew"
        self.password = primary.password
        for folder in (self.data, self._wal_folder):
            if folder is not None and folder.exists():
                shutil.rmtree(folder)
        source = f"host=127.0.0.1 port={primary.port} user={USER} password={self.password}"
        self._run("pg_basebackup", *self._place(), "-R", "-X", "stream", "-c", "fast",
                  "-d", f"{source} application_name={STANDBY}")  # fmt: skip
        return self

    def start(self, wait: bool = True) -> Self:
        words = [word for item in self._options() for word in ("-c", item)]
        done = self._who.run(
            *("/bin/sh", "-c", DETACHED, "sh", str(self.log)),
            *(self._binaries["postgres"], "-D", str(self.data), *words),
        )
        self._pid = int(done.stdout.split()[-1])
        if wait:
            self.wait_until_ready()
        return self

    def wait_until_ready(self) -> None:
        until = time.monotonic() + DEADLINE
        while True:
            try:
                self.value("select 1")
                return
            except psycopg.OperationalError:
                assert self.alive, f"the server has ended:\n{self.said()}"
                assert time.monotonic() < until, f"the server is not ready:\n{self.said()}"
                time.sleep(0.02)

    def stop(self) -> None:
        """Shut down in order, letting nobody finish."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """End every process of the server at once."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        if self._pid is None:
            return
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self._pid)
            process.send_signal(how)
            until = time.monotonic() + DEADLINE
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                assert time.monotonic() < until, f"the server does not end:\n{self.said()}"
                time.sleep(0.01)
        self._pid = None

    @property
    def alive(self) -> bool:
        return self._pid is not None and psutil.pid_exists(self._pid)

    def promote(self) -> None:
        """Make a standby the primary, and wait until it takes writes."""
        assert self.value("select pg_promote(true, 60)"), self.said()

    # ── talk ──

    def dsn(self, database: str = DATABASE, ports: Sequence[int] = ()) -> str:
        """Name a database of this server, reached directly or through these ports."""
        where = ",".join(f"127.0.0.1:{port}" for port in ports or [self.port])
        return f"postgresql://{USER}:{self.password}@{where}/{database}?sslmode=disable"

    def connect(self, database: str = DATABASE) -> psycopg.Connection[Any]:
        """Connect as the story itself, whom no fault is aimed at."""
        return psycopg.connect(
            self.dsn(database), autocommit=True, connect_timeout=5, application_name="story"
        )

    def value(self, sql: str, *args: object, database: str = DATABASE) -> Any:
        """Ask one question over a connection of its own."""
        with self.connect(database) as connection:
            cursor = connection.execute(cast(LiteralString, sql), args or None)
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def said(self) -> str:
        """Return the end of the server's log."""
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    # ── inside ──

    def _options(self) -> list[str]:
        own = {"port": str(self.port), "unix_socket_directories": ""}
        return [f"{name}={value}" for name, value in {**self.settings, **own}.items()]

    @property
    def _wal_folder(self) -> Path | None:
        return None if self._wal is None else self._wal / "wal"

    def _place(self) -> list[str]:
        """Make the folders of a new cluster; returns the words that name them."""
        words: list[str] = []
        for option, folder in (("--pgdata", self.data), ("--waldir", self._wal_folder)):
            if folder is not None:
                folder.mkdir(mode=0o700)
                self._who.give(folder)
                words.append(f"{option}={folder}")
        self.log.touch()
        self._who.give(self.log)
        return words

    def _run(self, program: str, *words: str) -> None:
        done = self._who.run(self._binaries[program], *words)
        assert done.returncode == 0, done.stdout.decode(errors="replace")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
