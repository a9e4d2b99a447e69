"""The program whose worker is watched for secrets: `howdah worker tests.security.app:queue`.

And the jobs that misuse the pipe to their worker.
"""

from __future__ import annotations

import base64
import os
import socket
import sys
import time
import zlib

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


@queue.job(run="process", max_attempts=1)
def tells_and(said: str, then: str) -> str:
    """Write something of one's own into the pipe to the worker, and go on as if nothing was."""
    for piece in said.split():
        with socket.socket(fileno=os.dup(int(sys.argv[1]))) as pipe:
            pipe.sendall(zlib.decompress(base64.b64decode(piece)))
    if then == "die":
        os._exit(3)
    if then == "wait":
        time.sleep(0.1)
    return "told"


@queue.job(run="process")
def says(n: int) -> int:
    return n


def queue_at(dsn: str) -> Queue:
    """Return a queue on another database that knows the functions with a process of their own."""
    other = Queue(dsn)
    for job in (tells, tells_and, says):
        other.job(run="process", max_attempts=job.handler.rules.max_attempts)(job.function)
    return other
