"""Support: run commands in this process, in a process of their own, or on a terminal."""

from __future__ import annotations

import json
import logging
import os
import pty
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from uuid import UUID

from click.testing import CliRunner, Result

from howdah.cli.commands import howdah
from howdah.client.sync import SyncQueue
from howdah.job import Job


class Cli:
    """Runs commands on one database."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def __call__(self, *arguments: object, input: str | None = None) -> Result:
        """Run a command and return its result; a traceback fails the test."""
        return invoke(*arguments, "--dsn", self.dsn, input=input)

    def ok(self, *arguments: object, input: str | None = None) -> str:
        """Run a command that must succeed; returns its stdout."""
        result = self(*arguments, input=input)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: object) -> Any:
        """Run a command with --json that must succeed; returns the parsed output."""
        return json.loads(self.ok(*arguments, "--json"))


def invoke(*arguments: object, input: str | None = None) -> Result:
    """Run a command without a database of its own."""
    with process_restored():
        return CliRunner().invoke(
            howdah, [str(argument) for argument in arguments], input=input, catch_exceptions=False
        )


@contextmanager
def process_restored() -> Generator[None]:
    """Restore the log and the environment, which `howdah worker` sets up for its process."""
    root, variables = logging.getLogger(), dict(os.environ)
    level, handlers = root.level, list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.handlers[:] = handlers
        os.environ.clear()
        os.environ.update(variables)


def environment(**more: str) -> dict[str, str]:
    """Return an environment that names no database and forces no colours."""
    drop = ("HOWDAH_DSN", "DATABASE_URL", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE")
    kept = {name: value for name, value in os.environ.items() if name not in drop}
    return {**kept, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", **more}


@contextmanager
def started(
    *arguments: object, cwd: Path | None = None, **more: str
) -> Generator[subprocess.Popen[str]]:
    """Start a command as a process of its own; it is killed at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "howdah", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=environment(**more),
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def run(
    *arguments: object, cwd: Path | None = None, timeout: float = 60, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own, to its end."""
    return subprocess.run(
        [sys.executable, "-m", "howdah", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment(**more),
        timeout=timeout,
    )


def on_a_terminal(*arguments: object, **more: str) -> str:
    """Run a command on a terminal; returns its output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "howdah", *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(**more),
    )
    os.close(theirs)
    written = b""
    try:
        while part := _read(ours):
            written += part
    finally:
        os.close(ours)
        process.wait(60)
    return written.decode()


class Terminal:
    """A command that runs on a terminal, and its output."""

    def __init__(self, *arguments: object, cwd: Path | None = None, **more: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _IN_A_TERMINAL, *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=cwd,
            env=environment(**more),
            start_new_session=True,
        )
        os.close(theirs)
        self.output = ""
        self._read_to = 0  # the position of `read_until` in the output

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def read_until(self, *texts: str) -> None:
        """Read the output until it has these texts, in this order."""
        for text in texts:
            while (at := self.output.find(text, self._read_to)) < 0:
                part = _read(self._ours).decode(errors="replace")
                self.output += part
                assert part, f"it ended and never printed {text!r}:\n{self.output}"
            self._read_to = at + len(text)

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def exit_code(self) -> int:
        """Read the output to its end; returns the exit code."""
        while part := _read(self._ours):
            self.output += part.decode(errors="replace")
        return self.process.wait(30)


# The leader of a session gets its signals, such as Ctrl-C, from the terminal of the session.
_IN_A_TERMINAL = """
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.argv[0] = "howdah"
runpy.run_module("howdah", run_name="__main__")
"""


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # on Linux: the other side is closed
        return b""


def claim(queue: SyncQueue, *job_types: str, worker_id: str = "someone") -> list[Job]:
    return queue.claim(job_types, 1000, worker_id=worker_id)


def failed(queue: SyncQueue, job_type: str, error: str = "ValueError: no") -> UUID:
    """Make a job that has failed."""
    handle = queue.enqueue(job_type, max_attempts=1)
    (job,) = claim(queue, job_type)
    queue.fail(job, error)
    return handle.id


def completed(queue: SyncQueue, job_type: str, result: Any = None) -> UUID:
    """Make a job that has completed."""
    handle = queue.enqueue(job_type)
    (job,) = claim(queue, job_type)
    queue.complete(job, result)
    return handle.id
