"""A first job: register a function, hand a call of it over, get the result back.

Run it: python examples/first_job.py

No PostgreSQL needed: without a DSN, howdah starts a private one.
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
