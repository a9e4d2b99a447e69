"""Steps: what has ended is not done again, and a job waits for a person without a slot.

Run it: python examples/steps.py
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

from howdah import Backoff, JobContext, Queue

queue = Queue()


async def charge(order_id: int) -> str:
    print(f"charged order {order_id}")
    return f"receipt {order_id}"


async def ship(receipt: str, attempt: int) -> str:
    if attempt == 1:
        raise ConnectionError("no van")  # the next attempt does not charge again
    return f"shipped with {receipt}"


@queue.job(backoff=Backoff(first=timedelta(milliseconds=100)))
async def order(ctx: JobContext, order_id: int) -> str:
    receipt = await ctx.step("charge", charge, order_id)
    approval = await ctx.wait_for("approved", timeout=timedelta(days=3))
    shipped = await ctx.step("ship", ship, receipt, ctx.attempt)
    return f"{shipped}, approved by {approval['by']}"


async def main() -> None:
    async with queue:
        handle = await order.enqueue(order_id=7)
        async with queue.worker() as worker:
            await worker.run_until_idle()
            print((await queue.why(handle.id)).sentence.partition(" since ")[0])
            await handle.signal("approved", {"by": "ann"})
            print(await handle.result())


if __name__ == "__main__":
    asyncio.run(main())
