"""Support: commands in this process, in one of their own, and on a terminal."""

from __future__ import annotations

import json
import logging
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable, Generator
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
        """Run a command and return what it said; a traceback fails the test."""
        return invoke(*arguments, "--dsn", self.dsn, input=input)

    def ok(self, *arguments: object, input: str | None = None) -> str:
        """Run a command that must succeed; returns its stdout."""
        result = self(*arguments, input=input)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: object) -> Any:
        """Run a command with --json that must succeed; returns what it printed."""
        return json.loads(self.ok(*arguments, "--json"))


def invoke(*arguments: object, input: str | None = None) -> Result:
    """Run a command without a database of its own."""
    with left_as_found():
        return CliRunner().invoke(
            howdah, [str(one) for one in arguments], input=input, catch_exceptions=False
        )


@contextmanager
def left_as_found() -> Generator[None]:
    """Undo what `howdah worker` does to its process: it sets up the log and the environment."""
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
    """Return an environment that leads to no database and forces no colours."""
    drop = ("HOWDAH_DSN", "DATABASE_URL", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE")
    kept = {name: value for name, value in os.environ.items() if name not in drop}
    return {**kept, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30", **more}


@contextmanager
def started(
    *arguments: object, cwd: Path | None = None, **more: str
) -> Generator[subprocess.Popen[str]]:
    """Start a command as a process of its own; killed at the latest when the test ends."""
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
    """Run a command with a terminal for stdout and stderr; returns all it wrote there."""
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
    """A command that a person has started in a terminal, and what the terminal shows."""

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
        self.shown = ""
        self._read_to = 0  # how far into it `read_until` has come

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def read_until(self, *texts: str) -> None:
        """Read on until these were shown, in their order."""
        for text in texts:
            while (at := self.shown.find(text, self._read_to)) < 0:
                part = _read(self._ours).decode(errors="replace")
                self.shown += part
                assert part, f"it ended and never showed {text!r}:\n{self.shown}"
            self._read_to = at + len(text)

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def ended(self) -> int:
        """Read to the end; returns the exit code."""
        while part := _read(self._ours):
            self.shown += part.decode(errors="replace")
        return self.process.wait(30)


# The terminal of a session is that from which its leader takes signals: Ctrl-C among them.
_IN_A_TERMINAL = """
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.argv[0] = "howdah"
runpy.run_module("howdah", run_name="__main__")
"""


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that the other side has gone
        return b""


def until_true(condition: Callable[[], bool], what: str) -> None:
    """Return as soon as the condition holds; fail when it does not within the deadline."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, f"never came true: {what}"
        time.sleep(0.02)


def claim(queue: SyncQueue, *job_types: str, worker_id: str = "someone") -> list[Job]:
    return queue.claim(job_types, 1000, worker_id=worker_id)


def failed(queue: SyncQueue, job_type: str, error: str = "ValueError: no") -> UUID:
    """Make one job that has failed."""
    handle = queue.enqueue(job_type, max_attempts=1)
    (job,) = claim(queue, job_type)
    queue.fail(job, error)
    return handle.id


def completed(queue: SyncQueue, job_type: str, result: Any = None) -> UUID:
    """Make one job that has completed."""
    handle = queue.enqueue(job_type)
    (job,) = claim(queue, job_type)
    queue.complete(job, result)
    return handle.id
