"""The program of the worker processes: `howdah worker tests.stories.app:queue`.

Each run of a job emits an event, so that a story can count the runs.
"""

from __future__ import annotations

import asyncio
import os
import time

from howdah import JobContext, Queue

queue = Queue()


@queue.job(max_attempts=3)
async def hang_once(ctx: JobContext, n: int) -> int:
    """Hang on the first attempt until the process is killed; succeed on the next."""
    await ctx.emit("began", {"n": n, "attempt": ctx.attempt})
    if ctx.attempt == 1:
        await asyncio.sleep(3600)
    return n


@queue.job
async def shared(ctx: JobContext, n: int) -> int:
    """Return at once. Foreign workers claim jobs of this type too."""
    return n


@queue.job(run="process")
def in_a_process(ctx: JobContext) -> None:
    """Emit the process id, then run for an hour."""
    ctx.emit("pid", os.getpid())
    time.sleep(3600)
