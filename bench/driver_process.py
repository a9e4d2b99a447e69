"""Driver process: start a peer's driver and talk to it, from the benchmark's side.

driver.py has the protocol. A driver runs in a session of its own. When the block is left, the
driver and all its children are killed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.call_counter import ADDRESS, CALLS_FOLDER
from bench.install import ROOT, Environment

TIMEOUT = 300.0


class DriverFailed(Exception):
    """A driver ended, or did not answer in time."""


class DriverProcess:
    """One running driver."""

    def __init__(self, process: subprocess.Popen[bytes], errors: Path) -> None:
        self._process = process
        self._errors = errors
        self._unread = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> None:
        self.read("ready")

    def send_start(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the next read reports that the driver has ended
            self._process.stdin.write(b"start\n")
            self._process.stdin.flush()

    def read(self, field: str, timeout: float = TIMEOUT) -> Any:
        """Wait for a line with this field, and return the field's value."""
        deadline = time.monotonic() + timeout
        while True:
            line = self._read_line(deadline)
            if line.startswith(b"{") and field in (fields := json.loads(line)):
                return fields[field]

    def check_alive(self) -> None:
        if self._process.poll() is not None:
            raise self._failure(f"ended with exit code {self._process.returncode}")

    def _read_line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        out = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            ready, _, _ = select.select([out], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise self._failure("did not answer in time")
            if not (received := os.read(out, 65536)):
                raise self._failure(f"ended with exit code {self._process.wait(TIMEOUT)}")
            self._unread += received
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _failure(self, what: str) -> DriverFailed:
        errors = self._errors.read_text(errors="replace").strip().splitlines()
        return DriverFailed("; ".join([f"its driver {what}", *errors[-3:]]))


@contextmanager
def start_driver(
    environment: Environment,
    verb: str,
    arguments: Mapping[str, Any],
    calls_folder: Path | None = None,
) -> Generator[DriverProcess]:
    """Start a driver. At the end of the block it is killed, and its children with it."""
    with tempfile.NamedTemporaryFile(prefix="bench-", suffix=".err") as errors:
        process = subprocess.Popen(
            [*environment.command, verb, json.dumps(arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "BENCH_HOME": str(environment.home),
                ADDRESS: arguments.get("address", ""),
                CALLS_FOLDER: str(calls_folder or ""),
            },
            start_new_session=True,
        )
        try:
            yield DriverProcess(process, Path(errors.name))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
