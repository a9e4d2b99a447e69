"""Jobs that run in processes: at the top level of a module, so that a child can import them."""

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

Then = Literal["return", "die", "fork", "orphan", "send_garbage", "steal_next"]

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
def completes(ctx: JobContext) -> None:
    ctx.complete_in(None)


@_queue.job(run="process")
def raises() -> None:
    raise ValueError("from the child")


@_queue.job(run="process", timeout=0.5, max_attempts=1)
def sleepy(path: str) -> None:
    with open(path, "w") as file:
        file.write(str(os.getpid()))
    time.sleep(3600)


@_queue.job(run="process")
def log_and_wait(
    ctx: JobContext,
    log: str,
    n: int,
    lock: str | None = None,
    hold_gil: bool = False,
    then: Then = "return",
    padding: str = "",
) -> dict[str, int]:
    """Write a line to the log, wait until the lock is released, and end as `then` says."""
    write(log, f"{n} {os.getpid()}")
    ctx.progress(n % 101)
    if then == "orphan" and os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    if lock is not None:
        with open(lock) as file:
            if hold_gil:  # a call that does not release the GIL
                ctypes.PyDLL(None).flock(file.fileno(), fcntl.LOCK_SH)
            else:
                fcntl.flock(file, fcntl.LOCK_SH)
    if then == "send_garbage":
        os.write(int(sys.argv[1]), b"\0\0\0\7nothing")
        time.sleep(3600)  # until the worker kills the process
        signal.pause()
    if then == "steal_next":  # take the next job and do not begin it
        os.read(int(sys.argv[2]), 100_000)
    if then in ("die", "steal_next"):
        os.kill(os.getpid(), signal.SIGKILL)
    if then == "fork" and (forked := os.fork()):
        os.waitpid(forked, 0)
    return {"pid": os.getpid(), "n": n, "padding": len(padding)}


@_queue.job(run="process")
def leave_thread(ctx: JobContext, lock: str, refused: str) -> None:
    """Start a thread that reports after the job has ended, when the lock is released."""

    def report() -> None:
        with open(lock) as file:
            fcntl.flock(file, fcntl.LOCK_SH)
        try:
            ctx.progress(99, "from an ended job")
        except StaleLease:
            write(refused, "refused")

    threading.Thread(target=report, daemon=True).start()


def write(path: str, line: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{line}\n".encode())
    os.close(file)


def queue_at(dsn: str) -> Queue:
    """Return a queue on another database that knows the same functions."""
    queue = Queue(dsn)
    for job in (whoami, die, second_time, completes, raises, sleepy):
        rules = job.handler.rules
        queue.job(run="process", timeout=rules.timeout, max_attempts=rules.max_attempts)(
            job.function
        )
    return queue


@_queue.job(run="process", key="path", ordered=True)
def append(path: str, n: int) -> None:
    """Append a number to a file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(f"{n}\n")
