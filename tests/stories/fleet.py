"""Fleet: the processes of a story, all of them real: workers, producers and an inspector.

Workers are `howdah worker`, as anybody would run it. Whatever is done to the database, none of
them may exit by itself; one that a fault has killed is replaced, as a supervisor would.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.processes import ROOT

LEASE = 3.0  # seconds a worker may be silent
STRANGERS_LEASE = 6.0  # seconds a worker that never beats may hold a job
SKEWED = Path(__file__).with_name("skewed")


class Fleet:
    """Starts processes, and knows which of them ought to be alive."""

    def __init__(self, folder: Path, dsn: str, direct_dsn: str, seed: int) -> None:
        self.folder = folder
        self._dsn = dsn
        self._direct_dsn = direct_dsn
        self._seed = seed
        self._started = 0
        self.workers: list[subprocess.Popen[bytes]] = []
        self.producers: list[subprocess.Popen[bytes]] = []
        self.inspectors: list[subprocess.Popen[bytes]] = []
        self.killed: set[int] = set()

    def start(self, *, workers: int, producers: int, per_second: float) -> None:
        for _ in range(workers):
            self.add_worker()
        for _ in range(producers):
            self.add_producer(per_second)
        self.add_inspector()

    def add_worker(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        words = [
            *("-m", "howdah", "worker", "tests.stories.jobs:queue", "--log-level", "info"),
            *("--concurrency", "20", "--silent-after", f"{LEASE}s"),
            *("--stale-after", f"{STRANGERS_LEASE}s", "--grace", "5s", *options),
        ]
        process = self._spawn(words, self._dsn, environment)
        self.workers.append(process)
        return process

    def add_producer(self, per_second: float, **environment: str) -> subprocess.Popen[bytes]:
        words = ["-m", "tests.stories.producer", "producer", self._next(), str(per_second)]
        process = self._spawn(words, self._dsn, environment)
        self.producers.append(process)
        return process

    def add_inspector(self) -> None:
        words = ["-m", "tests.stories.inspector", "inspector", self._next()]
        self.inspectors.append(self._spawn(words, self._direct_dsn, {}))

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a process with -9."""
        self.killed.add(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for crew in (self.workers, self.producers, self.inspectors):
            if process in crew:
                crew.remove(process)

    def let_go(self, process: subprocess.Popen[bytes]) -> None:
        """Ask a process to end in order, once it is up, and see that it does."""
        self._wait(process, "is up", lambda: self._is_up(process))
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        assert code == 0, f"{process.args!r} ended with {code}:\n{self.said(process)}"
        for crew in (self.workers, self.producers, self.inspectors):
            if process in crew:
                crew.remove(process)

    def until_it_says(self, worker: subprocess.Popen[bytes], word: str) -> None:
        """Wait until a worker's log has this word."""
        self._wait(worker, f"says {word}", lambda: word in self._log(worker).read_text())

    def _wait(self, process: subprocess.Popen[bytes], what: str, holds: Callable[[], bool]) -> None:
        until = time.monotonic() + 60
        while not holds():
            assert process.poll() is None, self.said(process)
            assert time.monotonic() < until, f"not within reach: {process.args!r} {what}"
            time.sleep(0.02)

    def _log(self, process: subprocess.Popen[bytes]) -> Path:
        return self.folder / f"{process.pid}.log"

    def _is_up(self, process: subprocess.Popen[bytes]) -> bool:
        if process in self.workers:
            return "worker.started" in self._log(process).read_text()
        return any(self.folder.glob(f"*-{process.pid}.jsonl"))

    def all_alive(self) -> None:
        """Fail if a process has gone that nobody killed."""
        for process in (*self.workers, *self.producers, *self.inspectors):
            code = process.poll()
            assert code is None, f"{process.args!r} ended with {code}:\n{self.said(process)}"

    def stop_producing(self) -> None:
        for process in list(self.producers):
            self.let_go(process)

    def stop(self) -> None:
        for process in [*self.producers, *self.inspectors, *self.workers]:
            self.let_go(process)

    def kill_all(self) -> None:
        for process in [*self.producers, *self.inspectors, *self.workers]:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()

    def said(self, process: subprocess.Popen[bytes]) -> str:
        """Return the end of a process's log."""
        path = self._log(process)
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def _next(self) -> str:
        self._started += 1
        return str(self._seed * 1000 + self._started)

    def _spawn(
        self, words: list[str], dsn: str, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        own = {"HOWDAH_DSN": dsn, "STORY_FOLDER": str(self.folder), "PYTHONFAULTHANDLER": "1"}
        unnamed = self.folder / "log"
        with unnamed.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=ROOT,
                env={**os.environ, **own, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        unnamed.rename(self._log(process))
        return process
