"""Workers: the worker processes of one measurement, and waiting for what they do."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.call_counter import CallReader
from bench.driver_process import DriverFailed, DriverProcess
from bench.measure.prepared_peer import PreparedPeer, Timing
from bench.measure.usage import Usage
from bench.peer import Plan

LONGEST_DRAIN = 240.0
SETTLED_WITHIN = 60.0  # after the last call of a handler
POLL = 0.002
PICKUP_POLL = 0.001
TAIL_POLLS = 20  # the store is asked less often the longer its last acknowledgements take


@dataclass(frozen=True, slots=True)
class Workers:
    processes: list[DriverProcess]
    calls: CallReader
    prepared: PreparedPeer

    def start(self) -> None:
        """Let all workers begin."""
        for process in self.processes:
            process.send_start()

    def wait_for_calls(self, jobs: int) -> None:
        """Wait until handlers were called so often."""
        deadline = time.monotonic() + SETTLED_WITHIN
        while (calls := self.calls.count().calls) < jobs:
            self._wait(deadline, f"{calls} of {jobs} jobs began", POLL)

    def wait_until_settled(self, jobs: int) -> Timing:
        """Wait for the handlers, then for the store.

        The interval begins when the first handler is called, and ends when all jobs are settled.
        The store is asked only after every handler was called, and the counts seldom until most
        were: asking takes time from the peer.
        """
        before: Usage | None = None
        deadline = time.monotonic() + LONGEST_DRAIN
        while (count := self.calls.count()).calls < jobs:
            if before is None and count.calls:
                before = self.prepared.usage(self.processes)
            seldom = 0 < count.calls < 0.9 * jobs
            problem = f"{count.calls} of {jobs} jobs had run after {LONGEST_DRAIN:.0f} s"
            self._wait(deadline, problem, 10 * POLL if seldom else POLL)
        ran = time.monotonic()
        while True:
            asked_ns = time.monotonic_ns()
            if not (left := self.prepared.unfinished()):
                break
            pause = max(POLL, (time.monotonic() - ran) / TAIL_POLLS)
            problem = f"{left} of {jobs} jobs were not settled at the end"
            self._wait(ran + SETTLED_WITHIN, problem, pause)
        after = self.prepared.usage(self.processes)
        return Timing(
            jobs,
            (asked_ns - self.calls.count().first_ns) / 1e9,
            usage=after.since(before) if before else None,  # None: it was over at once
        )

    def wait_until_picked_up(self, jobs: int) -> None:
        deadline = time.monotonic() + SETTLED_WITHIN
        while (picked_up := self.calls.pickups()) < jobs:
            self._wait(deadline, f"{picked_up} of {jobs} jobs were picked up", PICKUP_POLL)

    def _wait(self, deadline: float, problem: str, seconds: float) -> None:
        for process in self.processes:
            process.check_alive()
        if time.monotonic() > deadline:
            raise DriverFailed(problem)
        time.sleep(seconds)


@contextmanager
def start_workers(plan: Plan, prepared: PreparedPeer) -> Generator[Workers]:
    """Start the worker processes, and wait until they are connected."""
    with tempfile.TemporaryDirectory(prefix="bench-calls-") as folder, ExitStack() as stack:
        processes = [
            stack.enter_context(prepared.driver("work", plan=plan, calls_folder=Path(folder)))
            for _ in range(plan.processes)
        ]
        for process in processes:
            process.wait_until_ready()
        yield Workers(processes, CallReader(Path(folder)), prepared)
