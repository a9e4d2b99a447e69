"""Demo shop: a queue with some of everything that the dashboard shows.

The handlers stop at the same place in every run, so a picture does not depend on the speed of the
machine.
"""

from __future__ import annotations

import asyncio
import linecache
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from types import FunctionType
from typing import TypeVar
from uuid import UUID

import msgspec

from howdah import Handle, JobContext, JobFailed, Priority, Queue, State, observe
from howdah.events import Progressed

SHOP_FILE = "/srv/shop/jobs.py"
Handler = TypeVar("Handler", bound=FunctionType)

PRIORITIES = tuple(sorted(Priority, reverse=True))


class Shop(msgspec.Struct):
    """The queue, and the jobs whose pages are shown."""

    queue: Queue
    running: UUID
    failed: UUID


def shop_queue(dsn: str) -> Queue:
    """Register the job types of the shop."""
    queue = Queue(dsn)

    @queue.job(priority=Priority.EXPLICIT)
    async def send_mail(to: str, template: str) -> str:
        return f"{template} to {to}"

    @queue.job
    async def resize_image(ctx: JobContext, image: str, width: int) -> str:
        await ctx.progress(image.count("0") * 9 % 100, "shrinking")
        await _for_ever()
        return image

    @queue.job
    async def nightly_report(ctx: JobContext, month: str, order_total: int) -> None:
        for done, stage in ((12, "querying"), (48, "charting"), (64, "charting")):
            await ctx.progress(done, stage)
            await ctx.emit("page", {"number": done // 4, "stage": stage})
        await _for_ever()

    @queue.job(fail_on=ValueError)
    @_in_shop
    async def import_orders(file: str, line: int) -> None:
        raise ValueError(f"{file}, line {line}: 'abc' is not an amount")

    @queue.job(max_attempts=3)
    @_in_shop
    async def charge_card(order: int, card_token: str) -> None:
        raise ConnectionError(f"payment gateway closed the connection for order {order}")

    @queue.job
    async def sync_stock(warehouse: str) -> None: ...

    return queue


def _in_shop(function: Handler) -> Handler:
    """Make tracebacks show a file of the shop instead of this checkout."""
    code = function.__code__
    lines = linecache.getlines(code.co_filename)
    linecache.cache[SHOP_FILE] = (0, None, lines, SHOP_FILE)  # no mtime, so the cache entry stays
    function.__code__ = code.replace(co_filename=SHOP_FILE)
    return function


async def _for_ever() -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def open_shop(dsn: str) -> AsyncGenerator[Shop]:
    """Fill a new queue, with two running workers."""
    queue = shop_queue(dsn)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(queue)
        await queue.pause("sync_stock", "the warehouse is taking stock")
        workers = [
            queue.worker(concurrency=8, worker_id=f"web-{n}", grace=timedelta()) for n in (1, 2)
        ]
        for worker in workers:
            await stack.enter_async_context(worker)
        failed = await _day(queue)
        report = await queue.enqueue(
            "nightly_report", {"month": "2026-10", "order_total": 12345678901234567890}
        )
        for n in range(10):
            await queue.enqueue("resize_image", {"image": f"{n:0{n}d}.jpg", "width": 800})
        await _reaches(report, 64)
        await _workers_say_that_they_are_busy(queue)
        yield Shop(queue, report.id, failed)


async def _day(queue: Queue) -> UUID:
    """Enqueue the jobs that end or never start, and wait for those that end."""
    await queue.enqueue_many(
        queue.draft("send_mail", {"to": f"customer{n}@example.org", "template": "receipt"})
        for n in range(1240)
    )
    orders = [
        await queue.enqueue("import_orders", {"file": "orders.csv", "line": 17 + n})
        for n in range(3)
    ]
    for n in range(6):
        await queue.enqueue("charge_card", {"order": 7100 + n, "card_token": "tok_4242"})
    for n in range(25):
        urgency = PRIORITIES[n % 7 % 3]
        await queue.enqueue("sync_stock", {"warehouse": f"W{n}"}, priority=urgency)
    for n in range(4):
        await queue.enqueue("encode_video", {"video": f"tour-{n}.mov"})
    await queue.enqueue("send_mail", {"to": "a@example.org", "template": "reminder"}, delay=7200)
    for order in orders:
        with suppress(JobFailed):
            await order.result(timeout=60)
    return orders[-1].id


async def _workers_say_that_they_are_busy(queue: Queue) -> None:
    """Wait for the next beats: the overview has the busy slots from them."""
    while True:
        overview = await observe.overview(queue.store)
        if overview.busy >= sum(type.running for type in overview.types) > 0:
            return
        await asyncio.sleep(0.2)


async def _reaches(handle: Handle[object], percent: int) -> None:
    async for event in handle.events():
        if isinstance(event, Progressed) and (event.status, event.percent) == (
            State.RUNNING,
            percent,
        ):
            return
