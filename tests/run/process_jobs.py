"""Jobs that run in processes of their own: they must stand at the top level of a module."""

from __future__ import annotations

import os
import signal
import time

from howdah import JobContext, Queue, Retry

_queue = Queue("postgresql://nobody@127.0.0.1:1/never-opened")


@_queue.job(run="process")
def whoami(ctx: JobContext, n: int) -> dict[str, int]:
    ctx.progress(70, "in a child")
    ctx.emit("pid", os.getpid())
    return {"pid": os.getpid(), "n": n}


@_queue.job(run="process")
def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@_queue.job(run="process")
async def second_time(ctx: JobContext) -> int:
    if ctx.attempt == 1:
        raise Retry("not yet", after=0)
    return ctx.attempt


@_queue.job(run="process")
def raises() -> None:
    raise ValueError("from the child")


@_queue.job(run="process", timeout=0.5, max_attempts=1)
def sleepy(path: str) -> None:
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(3600)


def queue_at(dsn: str) -> Queue:
    """Return a queue on another database that knows the same functions."""
    queue = Queue(dsn)
    for job in (whoami, die, second_time, raises, sleepy):
        rules = job.handler.rules
        queue.job(run="process", timeout=rules.timeout, max_attempts=rules.max_attempts)(
            job.function
        )
    return queue
