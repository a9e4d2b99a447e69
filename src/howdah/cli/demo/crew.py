"""Crew: real worker processes for the demo, and their end.

Each is `howdah worker` as a user would start it. Its stdin is a lifeline: it closes with the
demo, however that ends, and the worker goes too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from howdah.errors import HowdahError

LIFELINE = "HOWDAH_DEMO"  # set: the process ends when its stdin does
SILENT_AFTER = "2s"
PATIENCE = 5.0  # seconds a worker gets to leave

COMMAND = [
    *("worker", "howdah.cli.demo.jobs:queue", "--concurrency", "4"),
    *("--silent-after", SILENT_AFTER, "--grace", "1s", "--log-level", "warning"),
]


class Crew:
    """The workers of one demo."""

    def __init__(self, home: Path, dsn: str) -> None:
        self._home = home
        self._dsn = dsn
        self._log = home / "workers.log"
        self._at_work: dict[int, subprocess.Popen[bytes]] = {}

    def hire(self) -> int:
        """Start one worker; returns its process id."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own command
                [sys.executable, "-P", "-m", "howdah", *COMMAND],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._home,
                env={**os.environ, "HOWDAH_DSN": self._dsn, LIFELINE: "1"},
            )
        self._at_work[process.pid] = process
        return process.pid

    def kill(self, pid: int) -> None:
        """Kill a worker with SIGKILL: it gets no chance to say or save anything."""
        process = self._at_work.pop(pid)
        process.kill()
        _reap(process)

    def check(self) -> None:
        """Complain when a worker has gone that nobody killed."""
        for pid, process in self._at_work.items():
            if (code := process.poll()) is not None:
                said = self._log.read_text(errors="replace")[-2000:]
                raise HowdahError(f"worker {pid} ended with exit code {code}:\n{said}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._at_work.values():
            process.terminate()
        for process in self._at_work.values():
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
            _reap(process)


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    assert process.stdin is not None
    process.stdin.close()
