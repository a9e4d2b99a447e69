"""Process: a peer's driver at work, on the benchmark's side.

The protocol is that of driver.py. A driver runs in a session of its own and is ended with all
its children when the block is left, however that happens.
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

from bench.install import ROOT, Environment
from bench.tally import ADDRESS, FOLDER

PATIENCE = 300.0


class Broken(Exception):
    """A driver ended, or fell silent, before it had said what it was asked."""


class Driver:
    """One running driver."""

    def __init__(self, process: subprocess.Popen[bytes], errors: Path) -> None:
        self._process = process
        self._errors = errors
        self._heard = b""

    def wait_until_ready(self) -> None:
        self.hear("ready")

    def go(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it will be missed when it does not answer
            self._process.stdin.write(b"go\n")
            self._process.stdin.flush()

    def hear(self, word: str, patience: float = PATIENCE) -> Any:
        """Wait until the driver says this word, and return what it says about it."""
        until = time.monotonic() + patience
        while True:
            line = self._line(until)
            if line.startswith(b"{") and word in (said := json.loads(line)):
                return said[word]

    def check_alive(self) -> None:
        if self._process.poll() is not None:
            raise self._broken(f"ended with {self._process.returncode}")

    def _line(self, until: float) -> bytes:
        assert self._process.stdout is not None
        out = self._process.stdout.fileno()
        while b"\n" not in self._heard:
            ready, _, _ = select.select([out], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise self._broken("fell silent")
            if not (heard := os.read(out, 65536)):
                raise self._broken(f"ended with {self._process.wait(PATIENCE)}")
            self._heard += heard
        line, _, self._heard = self._heard.partition(b"\n")
        return line

    def _broken(self, how: str) -> Broken:
        said = self._errors.read_text(errors="replace").strip().splitlines()
        return Broken("; ".join([f"its driver {how}", *said[-3:]]))


@contextmanager
def started(
    environment: Environment, verb: str, arguments: Mapping[str, Any], tally: Path | None = None
) -> Generator[Driver]:
    """Start a driver; at the end of the block it is killed, and its children with it."""
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
                FOLDER: str(tally or ""),
            },
            start_new_session=True,
        )
        try:
            yield Driver(process, Path(errors.name))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
