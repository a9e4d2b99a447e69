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
    """Report the process id, then sleep for ever."""
    ctx.emit("pid", os.getpid())
    time.sleep(3600)


@queue.job(max_attempts=1)
async def fails() -> None:
    raise RuntimeError("as it was asked to")


@queue.job(run="process")
def write_to_pipe(message: str) -> None:
    """Write raw bytes into the pipe to the worker, then wait."""
    os.write(int(sys.argv[1]), bytes.fromhex(message))
    time.sleep(3600)


@queue.job(run="process", max_attempts=1)
def write_to_pipe_and_end(message: str, then: str) -> str:
    """Write raw bytes into the pipe to the worker, then continue normally."""
    for piece in message.split():
        with socket.socket(fileno=os.dup(int(sys.argv[1]))) as pipe:
            pipe.sendall(zlib.decompress(base64.b64decode(piece)))
    if then == "die":
        os._exit(3)
    if then == "wait":
        time.sleep(0.1)
    return "done"


@queue.job(run="process")
def echo(n: int) -> int:
    return n


def queue_at(dsn: str) -> Queue:
    """Return a queue on another database with the functions that run in a process."""
    other = Queue(dsn)
    for job in (write_to_pipe, write_to_pipe_and_end, echo):
        other.job(run="process", max_attempts=job.handler.rules.max_attempts)(job.function)
    return other
