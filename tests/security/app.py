"""The program whose worker is watched for secrets: `howdah worker tests.security.app:queue`.

And the jobs that misuse the pipe to their worker.
"""

from __future__ import annotations

import os
import sys
import time

from howdah import JobContext, Queue

queue = Queue()


@queue.job(run="process", max_attempts=1)
def in_a_process(ctx: JobContext) -> None:
    """Say which process this is, then take for ever."""
    ctx.emit("pid", os.getpid())
    time.sleep(3600)


@queue.job(max_attempts=1)
async def fails() -> None:
    raise RuntimeError("as it was asked to")


@queue.job(run="process")
def tells(said: str) -> None:
    """Write something of one's own into the pipe to the worker, and wait for what comes of it."""
    os.write(int(sys.argv[1]), bytes.fromhex(said))
    time.sleep(3600)


@queue.job(run="process")
def says(n: int) -> int:
    return n


def queue_at(dsn: str) -> Queue:
    """Return a queue on another database that knows the functions with a process of their own."""
    other = Queue(dsn)
    for job in (tells, says):
        other.job(run="process")(job.function)
    return other
