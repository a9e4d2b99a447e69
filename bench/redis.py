"""Redis: start a private redis-server on its own socket, for the peers that need one.

It writes an append-only file with fsync once a second, as Redis recommends. That is a weaker
promise than a commit of PostgreSQL, and the report says so. If the machine has no redis-server and
we are root, Debian's package is installed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from bench.install import Unavailable
from bench.peer import Command
from bench.server import POLL, QUIET_WITHIN, REST, NotQuiet

SETTINGS = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
TIMEOUT = 20.0
BACKGROUND_WORK = ("rdb_bgsave_in_progress:1", "aof_rewrite_in_progress:1")


class Redis:
    """A connection to a running server, in plain RESP. Reads a line or one string as an answer."""

    def __init__(self, path: Path, version: str, pid: int) -> None:
        self.path = path
        self.version = version
        self.pid = pid
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(path))
        self._answers = self._socket.makefile("rb")

    def execute(self, *words: str) -> str:
        """Send a command that answers with a line or a string."""
        parts = [f"${len(word.encode())}\r\n{word}\r\n" for word in words]
        self._socket.sendall(f"*{len(words)}\r\n{''.join(parts)}".encode())
        answer = self._answers.readline().decode().strip()
        if answer.startswith("-") or not answer:
            raise RuntimeError(f"Redis answered {answer!r} to {words[0]}")
        if answer.startswith("$"):  # the length of a string, and then the string and CR LF
            return self._answers.read(int(answer[1:]) + 2).decode().strip()
        return answer[1:]

    def count(self, commands: tuple[Command, ...]) -> int:
        """Add up what these commands answer."""
        return sum(int(self.execute(*command)) for command in commands)

    def empty(self) -> None:
        self.execute("FLUSHALL")

    def make_quiet(self) -> None:
        """Wait until the server saves nothing and rewrites nothing in the background."""
        deadline = time.monotonic() + QUIET_WITHIN
        while any(work in self.execute("INFO", "persistence") for work in BACKGROUND_WORK):
            if time.monotonic() > deadline:
                raise NotQuiet(f"Redis still saved its data after {QUIET_WITHIN:.0f} s")
            time.sleep(POLL)
        time.sleep(REST)

    def close(self) -> None:
        self._answers.close()
        self._socket.close()


@contextmanager
def private_redis() -> Generator[Redis]:
    """Start a server with an empty store. It is stopped at the end of the block."""
    program = _program()
    output = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    version = next(word[2:] for word in output.split() if word.startswith("v="))
    with tempfile.TemporaryDirectory(prefix="bench-redis-") as folder:
        path = Path(folder, "s")
        options = [word for name, value in SETTINGS.items() for word in (f"--{name}", value)]
        process = subprocess.Popen(
            [program, "--port", "0", "--unixsocket", str(path), "--dir", folder, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            redis = _connect(path, version, process)
            yield redis
            redis.close()
        finally:
            process.terminate()
            process.wait()


def _connect(path: Path, version: str, process: subprocess.Popen[bytes]) -> Redis:
    deadline = time.monotonic() + TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return Redis(path, version, process.pid)
        except OSError:
            time.sleep(0.02)
    raise Unavailable("redis-server did not start")


def _program() -> str:
    if program := shutil.which("redis-server"):
        return program
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise Unavailable(
            "there is no redis-server on this machine: install it (root lets the benchmark do it"
        )
    for command in (("update",), ("install", "-y", "--no-install-recommends", "redis-server")):
        subprocess.run(
            [apt, "-q", *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        )
    if program := shutil.which("redis-server"):
        return program
    raise Unavailable("apt-get did not install redis-server: install it yourself")
