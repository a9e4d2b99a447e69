"""PostgreSQL server: one that a test may stop, crash, fill up and promote.

It listens on the loopback address and needs a password that is made for it. It waits for the disk
before it answers, as production servers do. `crash` is like `pg_ctl stop -m immediate`:
every process ends at once, and the next start recovers.
"""

from __future__ import annotations

import secrets
import shutil
import signal
import socket
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString, Self, cast

import psutil
import psycopg

from howdah.embedded.binaries import find_binaries
from howdah.embedded.home import Home
from howdah.embedded.root import prepare
from tests.support.waiting import wait_until

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
# a fault sets other values for the database
NO_TIMEOUTS = " ".join(
    f"-c {name}_timeout=0" for name in ("statement", "lock", "idle_in_transaction_session")
)
# The shell ends, so the server is not a child of this process.
DETACHED = 'log="$1"; shift; "$@" >>"$log" 2>&1 & echo $!'


class PgServer:
    """One database cluster and its server."""

    def __init__(self, folder: Path, *, wal: Path | None = None, **settings: str) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        self.folder = folder
        self.password = secrets.token_hex(8)
        self.settings = {**SETTINGS, **settings}
        self.port = free_port()
        self.log = folder / "server.log"
        run_as, home, self._binaries = prepare(Home(folder, base=folder), find_binaries())
        self._run_as = (
            run_as.for_initdb()
        )  # for the server too: the cluster lives as long as a test
        self.data = home.pgdata
        self._wal = wal  # a folder of its own for the WAL, perhaps on another disk
        self._pid: int | None = None

    # ── start and stop ──

    def make(self) -> Self:
        """Make the cluster."""
        password_file = self.folder / "password"
        password_file.write_text(self.password)
        self._run_as.give(password_file)
        self._run("initdb", *self._make_folders(), "-U", USER, "-A", "scram-sha-256", "-E", "UTF8",
                  "--locale=C", f"--pwfile={password_file}", "--no-instructions")  # fmt: skip
        return self

    def follow(self, primary: PgServer) -> Self:
        """Become a standby of a running primary: copy it, and follow it once started."""
        assert not self.alive, "a server that runs cannot be made anew"
        self.password = primary.password
        for folder in (self.data, self._wal_folder):
            if folder is not None and folder.exists():
                shutil.rmtree(folder)
        source = f"host=127.0.0.1 port={primary.port} user={USER} password={self.password}"
        self._run("pg_basebackup", *self._make_folders(), "-R", "-X", "stream", "-c", "fast",
                  "-d", f"{source} application_name={STANDBY}")  # fmt: skip
        return self

    def start(self, wait: bool = True) -> Self:
        arguments = [argument for option in self._options() for argument in ("-c", option)]
        done = self._run_as.run(
            *("/bin/sh", "-c", DETACHED, "sh", str(self.log)),
            *(self._binaries["postgres"], "-D", str(self.data), *arguments),
        )
        self._pid = int(done.stdout.split()[-1])
        if wait:
            self.wait_until_ready()
        return self

    def wait_until_ready(self) -> None:
        wait_until(
            self._is_ready, lambda: f"the server is ready:\n{self.log_tail()}", deadline=DEADLINE
        )

    def _is_ready(self) -> bool:
        try:
            self.value("select 1")
        except psycopg.OperationalError:
            assert self.alive, f"the server has ended:\n{self.log_tail()}"
            return False
        return True

    def stop(self) -> None:
        """Do a fast shutdown: end all sessions, then stop."""
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
            wait_until(
                lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE,
                lambda: f"the server ends:\n{self.log_tail()}",
                deadline=DEADLINE,
            )
        self._pid = None

    @property
    def alive(self) -> bool:
        return self._pid is not None and psutil.pid_exists(self._pid)

    def promote(self) -> None:
        """Make a standby the primary, and wait until it takes writes."""
        assert self.value("select pg_promote(true, 60)"), self.log_tail()

    # ── connect ──

    def dsn(self, database: str = DATABASE, ports: Sequence[int] = ()) -> str:
        """Return the DSN of a database, directly or through these ports."""
        where = ",".join(f"127.0.0.1:{port}" for port in ports or [self.port])
        return f"postgresql://{USER}:{self.password}@{where}/{database}?sslmode=disable"

    def connect(self, database: str = DATABASE) -> psycopg.Connection[Any]:
        """Connect as the test itself: faults spare this connection."""
        return psycopg.connect(
            self.dsn(database),
            autocommit=True,
            connect_timeout=5,
            application_name="story",
            options=NO_TIMEOUTS,
        )

    def value(self, sql: str, *args: object, database: str = DATABASE) -> Any:
        """Return one value, over a new connection."""
        with self.connect(database) as connection:
            cursor = connection.execute(cast(LiteralString, sql), args or None)
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def log_tail(self) -> str:
        """Return the end of the server's log."""
        return self.log.read_text(errors="replace")[-3000:] if self.log.exists() else ""

    # ── inside ──

    def _options(self) -> list[str]:
        fixed = {"port": str(self.port), "unix_socket_directories": ""}
        return [f"{name}={value}" for name, value in {**self.settings, **fixed}.items()]

    @property
    def _wal_folder(self) -> Path | None:
        return None if self._wal is None else self._wal / "wal"

    def _make_folders(self) -> list[str]:
        """Make the folders of a new cluster; returns the options that name them."""
        arguments: list[str] = []
        for option, folder in (("--pgdata", self.data), ("--waldir", self._wal_folder)):
            if folder is not None:
                folder.mkdir(mode=0o700)
                self._run_as.give(folder)
                arguments.append(f"{option}={folder}")
        self.log.touch()
        self._run_as.give(self.log)
        return arguments

    def _run(self, program: str, *arguments: str) -> None:
        done = self._run_as.run(self._binaries[program], *arguments)
        assert done.returncode == 0, done.stdout.decode(errors="replace")


@contextmanager
def running_server(folder: Path, password: str | None = None) -> Generator[PgServer]:
    """Run a server for as long as it is needed."""
    server = PgServer(folder)
    server.password = password or server.password
    server.make()
    try:
        yield server.start()
    finally:
        server.stop()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
