"""Worker slot: the place of one worker process, which may be killed and is then started again.

A worker that ended by itself is replaced too while the slot is supervised, as a service manager
does it. How often that was needed, and what the worker said last, is in the report.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.driver_process import DriverFailed, DriverProcess
from bench.measure.prepared_peer import PreparedPeer
from bench.peer import Plan

READY_WITHIN = 20.0  # seconds
LOOK_EVERY = 0.1


class WorkerSlot:
    """Has one running worker."""

    def __init__(self, prepared: PreparedPeer, plan: Plan, folder: Path) -> None:
        self.folder = folder
        self.kills = 0
        self.ended: list[str] = []  # why workers ended by themselves
        self._prepared, self._plan = prepared, plan
        self._lock = threading.Lock()
        self._process = ExitStack()
        self._driver: DriverProcess | None = None

    def start(self) -> None:
        with self._lock:
            self._start()

    def kill(self) -> None:
        """Kill the worker and all its children with SIGKILL, and start another one."""
        with self._lock:
            self._end()
            self.kills += 1
            self._start()

    def check_alive(self) -> None:
        if self._driver is not None:
            self._driver.check_alive()

    def replace_if_ended(self) -> None:
        with self._lock:
            try:
                if self._driver is None:
                    self._start()
                else:
                    self._driver.check_alive()
            except DriverFailed as problem:
                if self._driver is not None:  # not one that could not start: the server is away
                    self.ended.append(_short(problem))
                self._end()

    def close(self) -> None:
        with self._lock:
            self._end()

    def _start(self) -> None:
        driver = self._process.enter_context(
            self._prepared.driver("work", plan=self._plan, calls_folder=self.folder)
        )
        try:
            driver.read("ready", READY_WITHIN)
        except DriverFailed:
            self._end()
            raise
        driver.send_start()
        self._driver = driver

    def _end(self) -> None:
        self._driver = None
        self._process.close()  # kills it


def _short(problem: DriverFailed) -> str:
    """Return how a worker ended, and the last line of what it said."""
    lines = str(problem).split("; ")
    return "; ".join(line.strip() for line in dict.fromkeys((lines[0], lines[-1])))


@contextmanager
def worker_slot(prepared: PreparedPeer, plan: Plan) -> Generator[WorkerSlot]:
    """Start a worker. At the end of the block it is killed."""
    with tempfile.TemporaryDirectory(prefix="bench-calls-") as name:
        slot = WorkerSlot(prepared, plan, Path(name))
        try:
            slot.start()
            yield slot
        finally:
            slot.close()


@contextmanager
def supervised(slot: WorkerSlot) -> Generator[None]:
    """Start another worker whenever one has ended by itself, while the block runs."""
    stop = threading.Event()

    def supervise() -> None:
        while not stop.wait(LOOK_EVERY):
            slot.replace_if_ended()

    thread = threading.Thread(target=supervise, name="supervisor", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
