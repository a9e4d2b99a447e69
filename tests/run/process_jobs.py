"""Jobs that run in processes of their own: they must stand at the top level of a module."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
import threading
import time
from typing import Literal

from howdah import JobContext, Queue, Retry, StaleLease

Then = Literal["return", "die", "fork", "orphan", "babble", "rob"]

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


@_queue.job(run="process")
def visit(
    ctx: JobContext,
    book: str,
    n: int,
    gate: str | None = None,
    hold_on: bool = False,
    then: Then = "return",
    luggage: str = "",
) -> dict[str, int]:
    """Sign the visitors' book, pass the gate once it is open, and do as told."""
    write(book, f"{n} {os.getpid()}")
    ctx.progress(n % 101)
    if then == "orphan" and os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    if gate is not None:
        with open(gate) as file:
            if hold_on:  # through a call that does not let go of the interpreter
                ctypes.PyDLL(None).flock(file.fileno(), fcntl.LOCK_SH)
            else:
                fcntl.flock(file, fcntl.LOCK_SH)
    if then == "babble":
        os.write(int(sys.argv[1]), b"\0\0\0\7nothing")
        time.sleep(3600)  # at work until something comes of it
        signal.pause()  # until it is killed for that
    if then == "rob":  # take the next job, and do not begin it
        os.read(int(sys.argv[2]), 100_000)
    if then in ("die", "rob"):
        os.kill(os.getpid(), signal.SIGKILL)
    if then == "fork" and (forked := os.fork()):
        os.waitpid(forked, 0)
    return {"pid": os.getpid(), "n": n, "luggage": len(luggage)}


@_queue.job(run="process")
def leave_somebody(ctx: JobContext, gate: str, told: str) -> None:
    """Leave a thread behind that speaks when the gate opens."""

    def speak() -> None:
        with open(gate) as file:
            fcntl.flock(file, fcntl.LOCK_SH)
        try:
            ctx.progress(99, "from somebody else")
        except StaleLease:
            write(told, "refused")

    threading.Thread(target=speak, daemon=True).start()


def write(path: str, line: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def queue_at(dsn: str) -> Queue:
    """Return a queue on another database that knows the same functions."""
    queue = Queue(dsn)
    for job in (whoami, die, second_time, raises, sleepy):
        rules = job.handler.rules
        queue.job(run="process", timeout=rules.timeout, max_attempts=rules.max_attempts)(
            job.function
        )
    return queue
