"""Run on queue: open the queue of a command, run its coroutine, close the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from howdah import Queue
from howdah.client.loop import new_event_loop

T = TypeVar("T")


def run_on_queue(dsn: str | None, work: Callable[[Queue], Awaitable[T]]) -> T:
    """Run `work` on the queue that `dsn` names, in an event loop of its own."""

    async def with_queue() -> T:
        async with Queue(dsn) as queue:
            return await work(queue)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(with_queue())
