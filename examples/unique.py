"""Unique: enqueue a job that exists already, and let jobs expire that nobody needs any more.

Run it: python examples/unique.py

The search index of a page is written once, however often the page was changed meanwhile. A login
code is worth nothing after its time, so its job is cancelled if no worker has started it by then.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from howdah import JobCancelled, Queue

queue = Queue()


@queue.job(unique="page", unique_until="started", queue="index")
async def index(page: str) -> str:
    return f"indexed {page}"


@queue.job(expires=timedelta(milliseconds=200), queue="mail")
async def send_code(phone: str) -> None:
    print(f"sent a code to {phone}")


async def main() -> None:
    async with queue:
        handles = [await index.enqueue(page="/home") for _ in range(3)]
        print(f"enqueued {len({handle.id for handle in handles})} job:", end=" ")
        print([handle.existed for handle in handles])
        code = await send_code.enqueue(phone="+49 30 1234")

        async with queue.worker(queues="index"):  # nobody runs the queue `mail`
            print(await handles[0].result())
            try:
                await code.result()
            except JobCancelled as error:
                print(str(error).partition(" by ")[0].partition("cancelled: ")[2])
        print("existed:", (await index.enqueue(page="/home")).existed)


if __name__ == "__main__":
    asyncio.run(main())
