"""Bouncer: a real PgBouncer in transaction mode, in front of a server of the tests.

It has few server connections and many clients. So two statements of one client often use different
sessions, and code that depends on a session fails here within a few calls. If PgBouncer cannot be
installed, the tests are skipped and say what to do.
"""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.support.debian import missing, program
from tests.support.postgres_server import PgServer
from tests.support.waiting import wait_until


def find_pgbouncer() -> str:
    """Return the program, or skip the test."""
    if (path_of_program := program("pgbouncer")) is None:
        pytest.skip(f"PGBOUNCER NOT TESTED: {missing('pgbouncer')}")
    return path_of_program


class Bouncer:
    """A running PgBouncer, and the server behind it."""

    def __init__(self, server: PgServer, port: int) -> None:
        self.server = server
        self.port = port

    def dsn(self, database: str) -> str:
        return (
            f"postgresql://postgres:{self.server.password}@127.0.0.1:{self.port}/{database}"
            "?sslmode=disable"
        )

    def direct(self, database: str) -> str:
        return self.server.dsn(database)


def settings(server: PgServer, port: int, folder: Path, mode: str, sessions: int) -> str:
    return f"""\
[databases]
* = host=127.0.0.1 port={server.port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = md5
auth_file = {folder / "users.txt"}
pool_mode = {mode}
default_pool_size = {sessions}
max_client_conn = 500
server_round_robin = 1
logfile = {folder / "pgbouncer.log"}
pidfile = {folder / "pgbouncer.pid"}
"""


@contextmanager
def run_pgbouncer(
    server: PgServer, folder: Path, *, mode: str = "transaction", sessions: int = 4
) -> Generator[Bouncer]:
    """Run PgBouncer until the block ends."""
    program = find_pgbouncer()
    port = _free_port()
    (folder / "users.txt").write_text(f'"postgres" "{server.password}"\n')
    (folder / "pgbouncer.ini").write_text(settings(server, port, folder, mode, sessions))
    (folder / "pgbouncer.log").touch()
    user = _unprivileged_user() if os.geteuid() == 0 else None  # PgBouncer refuses to run as root
    if user is not None:
        for path in (folder, *folder.iterdir()):
            os.chown(path, user.pw_uid, user.pw_gid)
        for parent in (folder, *folder.parents):
            if parent.owner() != "root" or parent == Path("/"):
                continue
            parent.chmod(parent.stat().st_mode | 0o011)
    process = subprocess.Popen(
        [program, str(folder / "pgbouncer.ini")],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        user=user.pw_uid if user else None,
        group=user.pw_gid if user else None,
        extra_groups=[] if user else None,
    )
    try:
        bouncer = Bouncer(server, port)
        _wait_until_it_answers(bouncer, process, folder / "pgbouncer.log")
        yield bouncer
    finally:
        process.kill()
        process.wait()


def _unprivileged_user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("PGBOUNCER NOT TESTED: it refuses to run as root, and there is no other user")


def _wait_until_it_answers(bouncer: Bouncer, process: subprocess.Popen[bytes], log: Path) -> None:
    def log_tail() -> str:
        return log.read_text(errors="replace")[-2000:]

    def answers() -> bool:
        assert process.poll() is None, f"PgBouncer has ended: {log_tail()}"
        return _answers(bouncer)

    wait_until(answers, lambda: f"PgBouncer answers: {log_tail()}", deadline=30)


def _answers(bouncer: Bouncer) -> bool:
    try:
        psycopg.connect(bouncer.dsn("postgres"), connect_timeout=5).close()
    except psycopg.OperationalError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
