"""A program without asyncio, for `howdah worker tests.client_sync.app:queue`."""

from __future__ import annotations

import os

from howdah import SyncQueue

queue = SyncQueue()  # HOWDAH_DSN


@queue.job
def double(n: int) -> int:
    return n * 2


@queue.job
async def half(n: int) -> float:
    return n / 2


@queue.job(run="process")
def process_id() -> int:
    return os.getpid()


@queue.job
def quadruple(n: int) -> int:
    """Enqueue and wait inside a handler, beside the worker's own loop."""
    return double.enqueue(n=double.enqueue(n=n).result(timeout=60)).result(timeout=60)
