"""Handler: what a job of these benchmarks does, in every Python driver.

A payload has the number of the job and its key. Nothing else depends on the number, so a peer
cannot know more than the key. With the option `logged` the handler also logs when each job began
and ended: exactness.py reads these logs. driver.mjs has the same for the Node peers.

Uses only the standard library, because it runs inside every peer's environment.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from time import monotonic_ns
from typing import Any

from bench.call_counter import CALLS_FOLDER, CallCounter
from bench.driver import Task
from bench.pickup_log import TimesLog

BEGAN, ENDED = ".began", ".ended"  # pairs: the number of a job and one, and a time

Payload = dict[str, Any]


def keyed_payloads(task: Task) -> list[Payload]:
    """Return one payload per job; the keys are used in turn."""
    keys = task.options["keys"]
    return [{**job, "key": f"key-{job['number'] % keys}"} for job in task.payloads()]


class Handler:
    """Counts the jobs of this process, and logs them if the task says so."""

    def __init__(self, task: Task) -> None:
        folder = Path(os.environ[CALLS_FOLDER])
        self._calls = CallCounter(folder)
        self._logs = task.options.get("logged", False)
        self._sleep = task.sleep
        self._began, self._ended = TimesLog(folder, BEGAN), TimesLog(folder, ENDED)

    async def handle(self, number: int) -> None:
        if not self._logs:
            self._calls.handled(number)
            return
        self._began.add(number + 1, monotonic_ns())
        self._calls.handled(number)
        if self._sleep:
            await asyncio.sleep(self._sleep)
        self._ended.add(number + 1, monotonic_ns())

    def picked_up(self, sent: int) -> None:
        self._calls.picked_up(sent)
