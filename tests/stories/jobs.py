"""The jobs of the stories, as a program that workers run: `howdah worker tests.stories.jobs:queue`.

Each handler records when it began and how it ended, and returns its process id. The token connects
a job with the enqueue that it came from.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from howdah import Backoff, JobContext, Queue
from tests.stories.history import Log

SOON = Backoff(first=timedelta(milliseconds=200), factor=1.5, cap=timedelta(seconds=2))
MANY = 50  # attempts: faults cost some, and only `doomed` may run out of them

CALL_TIMEOUT = 5.0  # seconds

queue = Queue(call_timeout=CALL_TIMEOUT)
log = Log(Path(os.environ["STORY_FOLDER"]), "handler")

Ending = dict[str, int]


@contextmanager
def at_work(ctx: JobContext) -> Generator[Ending]:
    began = log.ask("began", job=str(ctx.id), attempt=ctx.attempt)
    try:
        yield {"pid": os.getpid(), "attempt": ctx.attempt}
    except asyncio.CancelledError:
        log.answer(began, "cancelled")
        raise
    except BaseException:
        log.answer(began, "raised")
        raise
    log.answer(began, "returned")


@queue.job(max_attempts=MANY, backoff=SOON)
async def quick(ctx: JobContext, token: str) -> Ending:
    """Return at once."""
    with at_work(ctx) as ending:
        return ending


@queue.job(max_attempts=MANY, backoff=SOON)
async def slow(ctx: JobContext, token: str, seconds: float) -> Ending:
    """Run for some seconds, and report progress."""
    with at_work(ctx) as ending:
        for step in range(4):
            await ctx.progress(step * 25, f"step {step}")
            await ctx.emit("step", step)
            await asyncio.sleep(seconds / 4)
        return ending


@queue.job(max_attempts=MANY, backoff=SOON)
def threaded(ctx: JobContext, token: str, seconds: float) -> Ending:
    """Run for some seconds in a thread, which cannot be cancelled."""
    with at_work(ctx) as ending:
        time.sleep(seconds)
        return ending


@queue.job(max_attempts=MANY, backoff=SOON)
async def flaky(ctx: JobContext, token: str, until: int) -> Ending:
    """Fail until a given attempt."""
    with at_work(ctx) as ending:
        if ctx.attempt < until:
            raise RuntimeError(f"not before attempt {until}")
        return ending


@queue.job(max_attempts=2, backoff=SOON)
async def doomed(ctx: JobContext, token: str) -> Ending:
    """Fail every time."""
    with at_work(ctx):
        raise RuntimeError("always fails")
