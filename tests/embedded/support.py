"""Support: processes to kill, conditions to wait for, questions to a server."""

from __future__ import annotations

import importlib
import os
import pwd
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, LiteralString, Self

import psutil
import psycopg

from howdah.embedded import Status, status
from howdah.embedded.own_user import User, account

LINGER = 0.2
PROLOGUE = f"""
from howdah.embedded import reaper
reaper.LINGER = {LINGER}
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
    """A process of its own that joins the server and uses it until told to go."""

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
        assert line, "the process ended without a word"
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


def until(condition: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.02)


def until_stopped(home: Path) -> None:
    until(lambda: not status(home).running, "the server has stopped by itself")
    until(lambda: not reapers(home), "its reaper has gone as well")


def running(home: Path) -> Status:
    found = status(home)
    assert found.running
    return found


def server_pid(home: Path) -> int:
    pid = running(home).pid
    assert pid is not None
    return pid


def servers(home: Path) -> list[psutil.Process]:
    """Find the servers at work in this home, without asking the code under test."""
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


def knock(socket: Path, user: pwd.struct_passwd | User) -> str:
    """Try to come in as that user; asks to be root. The program turns into him when it is up."""
    if not isinstance(user, User):
        user = account(user)
    script = """
import os, sys
from pathlib import Path
from howdah.embedded.wire import Conversation, Refused
os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[2]))
try:
    with Conversation(Path(sys.argv[1]), "howdah"):
        print("welcome")
except Refused as refusal:
    print("Refused", refusal.code)
except OSError as error:
    print(type(error).__name__)
"""
    words = [str(socket), str(user.uid), str(user.gid)]
    return subprocess.check_output([sys.executable, "-c", script, *words], text=True).strip()


def ask(dsn: str, question: LiteralString) -> str:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(question).fetchone()
    assert row is not None
    return str(row[0])


def run(dsn: str, *statements: LiteralString) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


async def ask_through_asyncpg(dsn: str, question: str) -> object:
    asyncpg: Any = importlib.import_module("asyncpg")  # it brings no types along
    connection = await asyncpg.connect(dsn)
    try:
        return await connection.fetchval(question)
    finally:
        await connection.close()
