"""Right use of the API: a type checker reports no error, and the types are exact."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type
from uuid import UUID

from howdah import (
    Backoff,
    Cancel,
    Draft,
    Event,
    Fail,
    Handle,
    Job,
    JobContext,
    JobType,
    Priority,
    Queue,
    Retry,
    Snooze,
    State,
    SyncHandle,
    SyncJobType,
    SyncQueue,
)

queue = Queue("postgresql://nowhere/nothing")


@dataclass
class Receipt:
    number: int


@queue.job
async def pay(number: int) -> Receipt:
    return Receipt(number)


async def paid() -> None:
    assert_type(await (await pay.enqueue(number=1)).result(), Receipt)
    assert_type(SyncQueue.of(queue).job_type(pay).enqueue(number=1).result(), Receipt)


async def charge(number: int, *, tip: float = 0.0) -> Receipt:
    return Receipt(number)


def charge_in_thread(number: int) -> Receipt:
    return Receipt(number)


@queue.job
async def order(ctx: JobContext, number: int) -> None:
    assert_type(await ctx.step("charge", charge, number, tip=0.5), Receipt)
    await ctx.sleep(timedelta(days=3))
    await ctx.sleep(60, name="remind")
    approved: dict[str, str] = await ctx.wait_for("approved", timeout=60)
    ctx.checkpoint(approved)
    assert await ctx.last_checkpoint() == approved


@queue.job
def order_in_thread(ctx: JobContext, number: int) -> None:
    assert_type(ctx.step("charge", charge_in_thread, number), Receipt)


async def approve(handle: Handle[None]) -> None:
    assert_type(await handle.signal("approved", {"by": "ann"}), bool)
    assert_type(await queue.signal(handle.id, "approved"), bool)
    assert_type(SyncQueue.of(queue).signal(handle.id, "approved"), bool)


@queue.job
async def bare(path: str, width: int) -> dict[str, int]:
    return {path: width}


@queue.job
async def bare_with_context(ctx: JobContext, path: str, width: int = 1) -> dict[str, int]:
    await ctx.progress(40, "encoding")
    await ctx.emit("frame", {"n": 3})
    return {path: width}


@queue.job(
    name="with-options",
    priority=Priority.BACKFILL,
    max_attempts=5,
    timeout=timedelta(minutes=10),
    backoff=Backoff(first=timedelta(seconds=1)),
    retry_on=(OSError, TimeoutError),
    fail_on=ValueError,
)
async def with_options(path: str, *, width: int) -> list[str]:
    return [path] * width


@queue.job(run="async", timeout=1.5)
async def with_options_and_context(ctx: JobContext, path: str) -> None:
    del ctx, path


@queue.job
def plain(path: str, width: int) -> int:
    return len(path) * width


@queue.job(run="process")
def plain_with_context(ctx: JobContext, path: str) -> str:
    ctx.progress(50)
    ctx.emit("half", None)
    return path


@queue.job
async def decides(n: int) -> int:
    if n == 1:
        raise Retry("later", after=3)
    if n == 2:
        raise Fail("never")
    if n == 3:
        raise Cancel("not needed")
    if n == 4:
        raise Snooze(timedelta(hours=1))
    return n


@queue.job
async def nothing() -> None: ...


async def asynchronous() -> None:
    assert_type(queue, Queue)
    handle = await bare.enqueue("a.png", width=320)
    assert_type(handle, Handle[dict[str, int]])
    assert_type(await handle.result(timeout=timedelta(seconds=1)), dict[str, int])
    assert_type(handle.id, UUID)
    assert_type(await handle.status(), State)
    assert_type(await handle.job(), Job)
    assert_type(await handle.cancel(), bool)
    assert_type(handle.events(after=3), AsyncGenerator[Event, None])
    async for event in handle.events():
        assert_type(event, Event)

    assert_type(await bare_with_context.enqueue(path="a.png"), Handle[dict[str, int]])
    assert_type(await with_options.enqueue("a.png", width=1), Handle[list[str]])
    assert_type(await with_options_and_context.enqueue("a.png"), Handle[None])
    assert_type(await plain.enqueue("a.png", 3), Handle[int])
    assert_type(await plain_with_context.enqueue("a.png"), Handle[str])
    assert_type(await (await decides.enqueue(n=1)).result(), int)
    assert_type(await (await nothing.enqueue()).result(), None)

    later = bare.options(priority=Priority.EXPLICIT, run_at=datetime.now(UTC), max_attempts=1)
    assert_type(await later.enqueue(path="a.png", width=320), Handle[dict[str, int]])
    assert_type(bare.draft(path="a.png", width=320), Draft)
    assert_type(await bare.enqueue_many(bare.draft(p, 1) for p in ("a", "b")), int)
    assert_type(await bare.enqueue_many([{"path": "a.png", "width": 1}]), int)
    assert_type(await queue.enqueue_many([bare.draft("a.png", 1), nothing.draft()]), int)
    assert_type(await queue.enqueue_many([nothing.draft()], returning="ids"), list[UUID])
    assert_type(await queue.enqueue_many([nothing.draft()], returning="handles"), list[Handle[Any]])
    assert_type(await bare.enqueue_many([bare.draft("a", 1)], returning="ids"), list[UUID])
    in_bulk = await bare.enqueue_many([bare.draft("a", 1)], returning="handles")
    assert_type(await in_bulk[0].result(), dict[str, int])
    assert_type(await queue.enqueue("bare", {"path": "a.png", "width": 1}), Handle[Any])

    (job, *_) = await queue.claim(["bare"], batch_size=10, worker_id="me")
    await queue.complete(job, {"bytes": 1})
    assert_type(await queue.fail(job, "no"), State)
    async with queue.worker(concurrency=100, job_types=["bare"]) as worker:
        assert_type(worker.id, str)


def anywhere(kind: JobType[[str, int], dict[str, int]]) -> Callable[..., Awaitable[object]]:
    return kind.enqueue


anywhere(bare)

sync = SyncQueue("postgresql://nowhere/nothing")


@sync.job
def sync_bare(path: str, width: int) -> dict[str, int]:
    return {path: width}


@sync.job(max_attempts=1)
def sync_with_context(ctx: JobContext, path: str) -> list[int]:
    ctx.progress(1)
    return [len(path)]


@sync.job
async def sync_async(n: int) -> float:
    return n / 2


def synchronous() -> None:
    handle = sync_bare.enqueue("a.png", width=320)
    assert_type(handle, SyncHandle[dict[str, int]])
    assert_type(handle.result(timeout=1.5), dict[str, int])
    assert_type(handle.events(), Generator[Event, None, None])
    assert_type(handle.job(), Job)
    assert_type(sync_with_context.enqueue(path="a.png"), SyncHandle[list[int]])
    assert_type(sync_async.enqueue(n=1).result(), float)
    assert_type(sync_bare.options(delay=3).enqueue("a.png", 1), SyncHandle[dict[str, int]])
    assert_type(sync_bare.draft("a.png", 1), Draft)
    assert_type(sync_bare.enqueue_many([sync_bare.draft("a.png", 1)]), int)
    assert_type(sync_bare.enqueue_many([sync_bare.draft("a", 1)], returning="ids"), list[UUID])
    assert_type(sync.enqueue("bare", {"n": 1}), SyncHandle[Any])
    assert_type(sync.get(handle.id), Job)
    assert_type(sync.asynchronous, Queue)
    with sync as opened, opened.worker(concurrency=4) as worker:
        worker.run_until_idle()

    sync_queue = SyncQueue.of(queue)
    assert_type(sync_queue, SyncQueue)
    kind = sync_queue.job_type(bare_with_context)
    assert_type(kind.enqueue(path="a.png", width=2).result(), dict[str, int])


def sync_anywhere(kind: SyncJobType[[str, int], dict[str, int]]) -> None:
    kind.enqueue("a.png", 1)


sync_anywhere(sync_bare)
sync_anywhere(SyncQueue.of(queue).job_type(bare))
