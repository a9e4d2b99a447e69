"""Workers: the worker processes of the demo.

Each is `howdah worker`, started like a user would start it. Its stdin is a pipe from the demo:
the pipe closes when the demo ends, for whatever reason, and then the worker ends too.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from howdah.errors import HowdahError

END_WITH_STDIN = "HOWDAH_DEMO"  # if set, the process ends when its stdin is closed
SILENT_AFTER = "2s"
STOP_TIMEOUT = 5.0  # seconds that a worker may take to stop

COMMAND = [
    *("worker", "howdah.cli.demo.jobs:queue", "--concurrency", "4"),
    *("--silent-after", SILENT_AFTER, "--grace", "1s", "--log-level", "warning"),
]


class WorkerProcesses:
    """The worker processes of one demo."""

    def __init__(self, home: Path, dsn: str) -> None:
        self._home = home
        self._dsn = dsn
        self._log = home / "workers.log"
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self) -> int:
        """Start a worker; returns its process id."""
        with self._log.open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own command
                [sys.executable, "-P", "-m", "howdah", *COMMAND],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._home,
                env={**os.environ, "HOWDAH_DSN": self._dsn, END_WITH_STDIN: "1"},
            )
        self._processes[process.pid] = process
        return process.pid

    def kill(self, pid: int) -> None:
        """Kill a worker with SIGKILL, so that it cannot clean up."""
        process = self._processes.pop(pid)
        process.kill()
        _reap(process)

    def check(self) -> None:
        """Raise an error if a worker has ended that was not killed."""
        for pid, process in self._processes.items():
            if (code := process.poll()) is not None:
                log = self._log.read_text(errors="replace")[-2000:]
                raise HowdahError(
                    f"worker {pid} of the demo ended with code {code}. Its log ends with:\n{log}"
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
            _reap(process)


def _reap(process: subprocess.Popen[bytes]) -> None:
    process.wait()
    assert process.stdin is not None
    process.stdin.close()
