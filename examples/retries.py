"""Retries: by rules, or as the handler decides.

Run it: python examples/retries.py

A raised exception is retried after a backoff, unless `fail_on` names it or `retry_on` does not.
A handler may also decide: it raises or returns Retry, Fail, Cancel or Snooze.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

from howdah import Backoff, Fail, Handle, JobContext, Queue, Retry, Snooze

queue = Queue()

quick = Backoff(first=timedelta(milliseconds=100), factor=2.0)


@queue.job(max_attempts=5, backoff=quick, retry_on=ConnectionError)
async def fetch(ctx: JobContext, url: str) -> str:
    if ctx.attempt < 3:
        raise ConnectionError(f"{url} hung up")
    return f"{url}, on attempt {ctx.attempt}"


@queue.job(max_attempts=5, fail_on=ValueError)
async def parse(text: str) -> int:
    return int(text)  # another attempt would not help


@queue.job(max_attempts=5)
async def call_api(ctx: JobContext) -> str:
    if ctx.attempt == 1:
        raise Retry("rate limited", after=0.2)  # the service said how long to wait
    raise Fail("the account is closed")  # failed for good, although attempts are left


asked = 0


@queue.job(max_attempts=1)
async def wait_for_file(ctx: JobContext) -> str:
    global asked
    asked += 1
    if asked < 3:
        raise Snooze(0.2, "not there yet")  # come back later; the attempt does not count
    return f"there, on attempt {ctx.attempt}"


async def main() -> None:
    async with queue, queue.worker():
        handles: list[Handle[Any]] = [
            await fetch.enqueue(url="example.org"),
            await parse.enqueue(text="abc"),
            await call_api.enqueue(),
            await wait_for_file.enqueue(),
        ]
        for handle in handles:
            async for _ in handle.events():
                pass
            job = await handle.job()
            print(f"{job.job_type}: {job.status} after {job.attempts} of {job.max_attempts}")
            for error in job.errors:
                print(f"    attempt {error['attempt']}: {error['error']}")
            if job.result is not None:
                print(f"    result: {job.result}")


if __name__ == "__main__":
    asyncio.run(main())
