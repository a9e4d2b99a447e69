"""Support: processes to kill, conditions to wait for, queries to a server."""

from __future__ import annotations

import importlib
import os
import pwd
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any, LiteralString, Self

import psutil
import psycopg

from howdah.embedded import Status, status
from howdah.embedded.own_user import User, account
from tests.support.waiting import wait_until

STOP_DELAY = 0.2
PROLOGUE = f"""
from howdah.embedded import reaper
reaper.STOP_DELAY = {STOP_DELAY}
"""
USER = """
import sys
from howdah.embedded import join
server = join()
print(server.dsn, flush=True)
sys.stdin.read()
server.release()
"""


class UserProcess:
    """A process that joins the server and uses it until its stdin is closed."""

    def __init__(self, home: Path, script: str = USER, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROLOGUE + script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOWDAH_HOME": str(home), **environment},
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """Wait for the next line it prints; the first one is the DSN."""
        assert self.process.stdout
        line = self.process.stdout.readline().strip()
        assert line, "the process ended without output"
        return line

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def leave(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        assert self.process.wait(timeout=30) == 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe
            pipe.close()


def until_stopped(home: Path) -> None:
    wait_until(lambda: not status(home).running, "the server has stopped by itself")
    wait_until(lambda: not reapers(home), "its reaper has ended too")


def running(home: Path) -> Status:
    server = status(home)
    assert server.running
    return server


def server_pid(home: Path) -> int:
    pid = running(home).pid
    assert pid is not None
    return pid


def servers(home: Path) -> list[psutil.Process]:
    """Find the servers of this home without the code under test."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if (words := process.info["cmdline"])
        and Path(words[0]).name == "postgres"
        and str(home) in " ".join(words)
    ]


def reapers(home: Path) -> list[psutil.Process]:
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if (words := process.info["cmdline"])
        and any("howdah.embedded.reaper" in word for word in words)
        and str(home.resolve()) in words
    ]


def try_to_connect(socket: Path, user: pwd.struct_passwd | User) -> str:
    """Try to connect as that user. Needs root: the program changes its user id."""
    if not isinstance(user, User):
        user = account(user)
    script = """
import os, sys
from pathlib import Path
from howdah.embedded.wire import Session, ServerError
os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[2]))
try:
    with Session(Path(sys.argv[1]), "howdah"):
        print("connected")
except ServerError as error:
    print("Refused", error.code)
except OSError as error:
    print(type(error).__name__)
"""
    arguments = [str(socket), str(user.uid), str(user.gid)]
    return subprocess.check_output([sys.executable, "-c", script, *arguments], text=True).strip()


def ask(dsn: str, query: LiteralString) -> str:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return str(row[0])


def run(dsn: str, *statements: LiteralString) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


async def query_with_asyncpg(dsn: str, query: str) -> object:
    asyncpg: Any = importlib.import_module("asyncpg")  # it has no types
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()
