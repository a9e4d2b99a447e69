"""Jobs: the handlers of howdah's worker, in a module that its child processes can import."""

from __future__ import annotations

import asyncio
import os

from bench.call_counter import ADDRESS, CALLS_FOLDER, CallCounter
from howdah import Queue

queue = Queue(os.environ[ADDRESS])
SLEEP = 0.001
_calls = CallCounter(os.environ[CALLS_FOLDER])


@queue.job
async def handle(number: int, rest: str) -> None:
    _calls.handled(number)


@queue.job
async def sleep(number: int, rest: str) -> None:
    _calls.handled(number)
    await asyncio.sleep(SLEEP)


@queue.job(run="thread")
def handle_in_thread(number: int, rest: str) -> None:
    _calls.handled(number)


@queue.job(run="process")
def handle_in_process(number: int, rest: str) -> None:
    _calls.handled(number)


@queue.job
async def pickup(number: int, rest: str) -> None:
    _calls.picked_up(number)
