"""The program that these tests run as a worker: `howdah worker tests.worker.app:queue`."""

from __future__ import annotations

from howdah import Queue

queue = Queue()


@queue.job
async def double(n: int) -> int:
    return n * 2
