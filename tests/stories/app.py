"""The program that stories run as worker processes: `howdah worker tests.stories.app:queue`.

Jobs leave a line in the database for every run, so that a story can count them afterwards.
"""

from __future__ import annotations

import asyncio
import os
import time

from howdah import JobContext, Queue

queue = Queue()


@queue.job(max_attempts=3)
async def hang_once(ctx: JobContext, n: int) -> int:
    """Hang on the first attempt until somebody kills the process; succeed on the next."""
    await ctx.emit("began", {"n": n, "attempt": ctx.attempt})
    if ctx.attempt == 1:
        await asyncio.sleep(3600)
    return n


@queue.job
async def shared(ctx: JobContext, n: int) -> int:
    """Be quick: foreign workers take jobs of this type too."""
    return n


@queue.job(run="process")
def in_a_process(ctx: JobContext) -> None:
    """Say which process this is, then take for ever."""
    ctx.emit("pid", os.getpid())
    time.sleep(3600)
