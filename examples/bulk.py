"""Bulk: enqueue ten thousand jobs as one stream, and let a worker run them.

Run it: python examples/bulk.py

`enqueue_many` takes any iterable of drafts and streams it through COPY. The stream is never in
memory as a whole. It enqueues all jobs or none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from howdah import Draft, Queue, State

COUNT = 10_000

queue = Queue()


@queue.job
async def square(n: int) -> int:
    return n * n


def drafts() -> Iterator[Draft]:
    for n in range(COUNT):
        yield square.draft(n=n)


async def main() -> None:
    async with queue:
        began = time.monotonic()
        count = await square.enqueue_many(drafts())
        print(f"enqueued {count:,} jobs in {time.monotonic() - began:.1f}s")

        began = time.monotonic()
        async with queue.worker() as worker:
            await worker.run_until_idle()
        print(f"ran them in {time.monotonic() - began:.1f}s")

        counts = await queue.counts()
        print(f"completed so far: {counts['square'][State.COMPLETED]:,}")


if __name__ == "__main__":
    asyncio.run(main())
