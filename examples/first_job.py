"""A first job: register a function, enqueue a job for it, get the result.

Run it: python examples/first_job.py

You need no PostgreSQL: without a DSN, howdah starts a private one.
"""

from __future__ import annotations

import asyncio

from howdah import Queue

queue = Queue()


@queue.job
async def greet(name: str) -> str:
    return f"hello {name}"


async def main() -> None:
    async with queue, queue.worker():
        handle = await greet.enqueue(name="world")
        print(await handle.result(timeout=30))


if __name__ == "__main__":
    asyncio.run(main())
