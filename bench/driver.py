"""Driver: what the drivers of all peers share. Runs in the peer's environment.

A driver is started as `python -m bench.peers.<peer>.driver VERB ARGUMENTS` and writes JSON lines.
It writes `{"ready": true}` when it is connected, waits for a line, does its work and writes how
long that took. So connecting, importing and making payloads are never measured. The verbs:

    install, versions             create the tables; name the packages and their versions
    enqueue_bulk, enqueue_single  enqueue `jobs` jobs: the fastest documented way; one by one
    work                          run handlers until killed
    send                          enqueue one job per line that is read, to measure pickup
    produce                       enqueue jobs at a rate, or as fast as they run: producer.py

Uses only the standard library, because it runs inside every peer's environment.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager
from importlib.metadata import distributions
from typing import Any

PAYLOAD_BYTES = 100

Verb = Callable[["Task"], Awaitable[None] | None]


class Task:
    """What a driver has to do."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.address: str = arguments.get("address", "")
        self.jobs: int = arguments.get("jobs", 0)
        self.options: dict[str, Any] = arguments.get("options", {})
        self._holds: bool = arguments.get("holds", False)
        self.sleep: float = self.options.get("sleep_ms", 0) / 1000  # what a job takes, in seconds

    def payloads(self) -> list[dict[str, Any]]:
        """Return one payload per job, each of a hundred bytes as JSON."""
        return [payload(number) for number in range(self.jobs)]

    def wait_for_start(self) -> None:
        """Report that the driver is ready, and wait for the start signal."""
        reply(ready=True)
        _read_signal()

    @contextmanager
    def timed(self) -> Generator[None]:
        """Wait for the start signal, and report how many seconds the block took.

        A driver that `holds` then waits for a second signal with its connections open: the CPU time
        of a process that is ending cannot be read reliably.
        """
        self.wait_for_start()
        began = time.perf_counter()
        yield
        reply(seconds=time.perf_counter() - began)
        if self._holds:
            _read_signal()

    def timestamped_payloads(self) -> Generator[dict[str, Any]]:
        """Yield a payload with the current time for each signal."""
        for _ in range(self.jobs):
            _read_signal()
            yield payload(time.monotonic_ns())

    async def timestamped_payloads_async(self) -> AsyncGenerator[dict[str, Any]]:
        for timestamped in self.timestamped_payloads():
            yield timestamped


def _read_signal() -> None:
    if not sys.stdin.readline():
        sys.exit("the benchmark has closed the driver's input: it has ended")


def payload(number: int) -> dict[str, Any]:
    return {"number": number, "rest": "x" * (PAYLOAD_BYTES - 21 - len(str(number)))}


def in_batches_of(size: int, payloads: list[dict[str, Any]]) -> Generator[list[dict[str, Any]]]:
    for start in range(0, len(payloads), size):
        yield payloads[start : start + size]


def reply(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def drive(
    *verbs: Verb, runner: Callable[[Any], Any] = asyncio.run, arguments: list[str] | None = None
) -> None:
    """Call the function that the command line names."""
    by_name: dict[str, Verb] = {verb.__name__: verb for verb in (*verbs, versions)}
    name, text = arguments or sys.argv[1:]
    result = by_name[name](Task(json.loads(text)))
    if inspect.isawaitable(result):
        runner(result)
    reply(done=True)


def versions(task: Task) -> None:
    packages = {package.name: package.version for package in distributions()}
    reply(versions={"python": ".".join(map(str, sys.version_info[:3])), **packages})
