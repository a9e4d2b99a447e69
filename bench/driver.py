"""Driver: what every peer's driver has in common, on the peer's side.

A driver is started as `python -m bench.peers.<peer>.driver VERB ARGUMENTS` and speaks JSON lines:
it says `{"ready": true}` when connected, waits for a line, does its work, and says how long it
took. Connecting, importing and making payloads are therefore never measured. The verbs:

    install          make the tables
    enqueue_bulk     hand over `jobs` jobs in the fastest way the peer documents
    enqueue_single   hand over `jobs` jobs one after another, each acknowledged
    work             handle jobs until killed
    send             hand over `jobs` jobs, each at the word, for measuring pickup
    versions         say which versions of which packages are at work

Only the standard library: this runs inside every peer's environment.
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
    """What a driver was asked to do."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.address: str = arguments.get("address", "")
        self.jobs: int = arguments.get("jobs", 0)
        self.options: dict[str, Any] = arguments.get("options", {})

    def payloads(self) -> list[dict[str, Any]]:
        """Return one payload per job, of a hundred bytes each as JSON."""
        return [payload(number) for number in range(self.jobs)]

    def go(self) -> None:
        """Say that all is ready, and wait for the word."""
        say(ready=True)
        if not sys.stdin.readline():
            sys.exit("nobody is there any more")

    @contextmanager
    def timed(self) -> Generator[None]:
        """Wait for the word, and say how long the block took."""
        self.go()
        began = time.perf_counter()
        yield
        say(seconds=time.perf_counter() - began)

    def moments(self) -> Generator[dict[str, Any]]:
        """Yield a payload that carries the present time whenever the word comes."""
        for _ in range(self.jobs):
            if not sys.stdin.readline():
                sys.exit("nobody is there any more")
            yield payload(time.monotonic_ns())

    async def moments_async(self) -> AsyncGenerator[dict[str, Any]]:
        for moment in self.moments():
            yield moment


def payload(number: int) -> dict[str, Any]:
    return {"number": number, "rest": "x" * (PAYLOAD_BYTES - 21 - len(str(number)))}


def in_lots_of(size: int, payloads: list[dict[str, Any]]) -> Generator[list[dict[str, Any]]]:
    for start in range(0, len(payloads), size):
        yield payloads[start : start + size]


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def drive(
    *verbs: Verb, runner: Callable[[Any], Any] = asyncio.run, arguments: list[str] | None = None
) -> None:
    """Do what the command line asks for, with one of these functions."""
    named: dict[str, Verb] = {verb.__name__: verb for verb in (*verbs, versions)}
    verb, text = arguments or sys.argv[1:]
    answer = named[verb](Task(json.loads(text)))
    if inspect.isawaitable(answer):
        runner(answer)
    say(done=True)


def versions(task: Task) -> None:
    found = {found.name: found.version for found in distributions()}
    say(versions={"python": ".".join(map(str, sys.version_info[:3])), **found})
