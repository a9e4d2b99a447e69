"""Fleet: the processes of a story: workers, producers, an inspector and an operator.

A worker is `howdah worker`, as a user runs it. No process may exit by itself, also if the database
fails. A process that a fault killed is replaced, as a supervisor does.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.processes import ROOT
from tests.support.waiting import wait_until

LEASE = 3.0  # seconds that a worker may be silent
FOREIGN_LEASE = 6.0  # seconds that a foreign worker, which never beats, may hold a job
SKEWED_CLOCK = Path(__file__).with_name("skewed_clock")


class Fleet:
    """Starts processes, and knows which of them must be alive."""

    def __init__(self, folder: Path, dsn: str, direct_dsn: str, seed: int) -> None:
        self.folder = folder
        self._dsn = dsn
        self._direct_dsn = direct_dsn
        self._seed = seed
        self._started = 0
        self.workers: list[subprocess.Popen[bytes]] = []
        self.producers: list[subprocess.Popen[bytes]] = []
        self.inspectors: list[subprocess.Popen[bytes]] = []
        self.operators: list[subprocess.Popen[bytes]] = []
        self.killed: set[int] = set()

    def start(self, *, workers: int, producers: int, per_second: float) -> None:
        for _ in range(workers):
            self.add_worker()
        for _ in range(producers):
            self.add_producer(per_second)
        self.add_inspector()
        self.add_operator()

    def add_worker(self, *options: str, **environment: str) -> subprocess.Popen[bytes]:
        arguments = [
            *("-m", "howdah", "worker", "tests.stories.effect_jobs:queue", "--log-level", "info"),
            *("--concurrency", "20", "--silent-after", f"{LEASE}s"),
            *("--stale-after", f"{FOREIGN_LEASE}s", "--grace", "5s", *options),
        ]
        process = self._spawn(arguments, self._dsn, environment)
        self.workers.append(process)
        return process

    def add_producer(self, per_second: float, **environment: str) -> subprocess.Popen[bytes]:
        arguments = ["-m", "tests.stories.producer", "producer", self._next(), str(per_second)]
        process = self._spawn(arguments, self._dsn, environment)
        self.producers.append(process)
        return process

    def add_inspector(self) -> None:
        arguments = ["-m", "tests.stories.inspector", "inspector", self._next()]
        self.inspectors.append(self._spawn(arguments, self._direct_dsn, {}))

    def add_operator(self) -> None:
        arguments = ["-m", "tests.stories.operator", "operator", self._next()]
        self.operators.append(self._spawn(arguments, self._direct_dsn, {}))

    @property
    def _groups(self) -> tuple[list[subprocess.Popen[bytes]], ...]:
        return self.producers, self.operators, self.inspectors, self.workers

    @property
    def _all(self) -> list[subprocess.Popen[bytes]]:
        return [process for group in self._groups for process in group]

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """End a process with SIGKILL."""
        self.killed.add(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        for group in self._groups:
            if process in group:
                group.remove(process)

    def stop_process(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until a process is up, end it with SIGTERM, and check its exit code."""
        self._wait(process, "is up", lambda: self._is_up(process))
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        assert code == 0, f"{process.args!r} ended with {code}:\n{self.log_tail(process)}"
        for group in self._groups:
            if process in group:
                group.remove(process)

    def wait_for_log(self, worker: subprocess.Popen[bytes], word: str) -> None:
        """Wait until a worker's log contains this word."""
        self._wait(worker, f"logs {word}", lambda: word in self._log(worker).read_text())

    def _wait(
        self, process: subprocess.Popen[bytes], state: str, holds: Callable[[], bool]
    ) -> None:
        def alive_and_holds() -> bool:
            assert process.poll() is None, self.log_tail(process)
            return holds()

        wait_until(alive_and_holds, f"{process.args!r} {state}", deadline=60)

    def _log(self, process: subprocess.Popen[bytes]) -> Path:
        return self.folder / f"{process.pid}.log"

    def _is_up(self, process: subprocess.Popen[bytes]) -> bool:
        if process in self.workers:
            return "worker.started" in self._log(process).read_text()
        return any(self.folder.glob(f"*-{process.pid}.jsonl"))

    def assert_all_alive(self) -> None:
        """Fail if a process has ended that no fault killed."""
        for process in self._all:
            code = process.poll()
            assert code is None, f"{process.args!r} ended with {code}:\n{self.log_tail(process)}"

    def stop_producing(self) -> None:
        for process in list(self.producers):
            self.stop_process(process)

    def stop(self) -> None:
        for process in self._all:
            self.stop_process(process)

    def kill_all(self) -> None:
        for process in self._all:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()

    def log_tail(self, process: subprocess.Popen[bytes]) -> str:
        """Return the end of a process's log."""
        path = self._log(process)
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def _next(self) -> str:
        self._started += 1
        return str(self._seed * 1000 + self._started)

    def _spawn(
        self, arguments: list[str], dsn: str, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        variables = {"HOWDAH_DSN": dsn, "STORY_FOLDER": str(self.folder), "PYTHONFAULTHANDLER": "1"}
        log_path = self.folder / "log"
        with log_path.open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, *arguments],
                cwd=ROOT,
                env={**os.environ, **variables, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        log_path.rename(self._log(process))
        return process
