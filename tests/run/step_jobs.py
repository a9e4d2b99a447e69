"""Jobs with steps that run in child processes, and a program whose worker is killed."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from howdah import Backoff, JobContext, Queue

queue = Queue(os.environ.get("STEPS_DSN", "postgresql://nobody@127.0.0.1:1/never-opened"))
AT_ONCE = Backoff(first=timedelta(0))


def note(file: str, line: str) -> int:
    """Write a line; returns how many there are."""
    with Path(file).open("a") as log:
        log.write(f"{line}\n")
    return len(Path(file).read_text().splitlines())


@queue.job(run="process", backoff=AT_ONCE)
def in_process(ctx: JobContext, file: str) -> list[int]:
    lines = [ctx.step("note", note, file, str(n)) for n in range(3)]
    if ctx.attempt == 1:
        ctx.checkpoint({"page": 7})
        raise ConnectionError
    return [*lines, ctx.last_checkpoint()["page"]]


async def note_async(file: str, line: str) -> int:
    return note(file, line)


@queue.job(run="process", backoff=AT_ONCE)
async def async_in_process(ctx: JobContext, file: str) -> object:
    await ctx.step("note", note_async, file, "before")
    return await ctx.wait_for("go")


@queue.job(run="process", max_attempts=1)
def swallows(ctx: JobContext) -> str:
    with suppress(BaseException):
        ctx.sleep(3600)
    return "done"


@queue.job(max_attempts=5)
async def killed(ctx: JobContext, file: str) -> None:
    for n in range(6):
        await ctx.step("note", note_async, file, str(n))
        if n % 2 and len(Path(file).read_text().splitlines()) == n + 1 and ctx.attempt < 4:
            os.kill(os.getpid(), 9)  # between two steps


if __name__ == "__main__":
    import asyncio

    asyncio.run(queue.worker(silent_after=float(sys.argv[1]), upkeep_every=0.1).run())
