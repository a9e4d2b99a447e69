"""Progress and events all arrive, in order, and do not overload the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from howdah import Emitted, Ended, Event, JobContext, JobFailed, Progressed, Queue, State
from howdah.run.reports import EVENTS_PER_FLUSH
from tests.support.waiting import eventually


async def test_progress_can_be_read_while_the_job_runs(queue: Queue) -> None:
    may_end = asyncio.Event()

    @queue.job
    async def work(ctx: JobContext) -> None:
        await ctx.progress(40, "encoding")
        await ctx.emit("frame", {"n": 3})
        await may_end.wait()

    handle = await work.enqueue()
    async with queue.worker():

        async def shows() -> bool:
            job = await handle.job()
            return (job.status, job.progress, job.current_stage, job.events_count) == (
                State.RUNNING,
                40,
                "encoding",
                1,
            )

        await eventually(shows)
        may_end.set()


async def test_the_last_progress_is_stored_if_the_job_ends_at_once(queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def quick(ctx: JobContext) -> None:
        for percent in range(0, 78):
            ctx.progress(percent, f"step {percent}")
        ctx.emit("last event")
        raise ValueError("and out")

    handle = await quick.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed):
            await handle.result(timeout=10)
    job = await handle.job()
    assert (job.progress, job.current_stage, job.events_count) == (77, "step 77", 1)


async def test_a_follower_sees_every_event_once_in_order_and_the_end_last(queue: Queue) -> None:
    @queue.job
    async def talk(ctx: JobContext) -> str:
        for n in range(30):
            await ctx.emit("line", n)
            await ctx.progress(n * 3)
        return "done"

    handle = await talk.enqueue()
    async with queue.worker():
        seen = [event async for event in handle.events()]
    assert [e.data for e in seen if isinstance(e, Emitted)] == list(range(30))
    assert [e.number for e in seen if isinstance(e, Emitted)] == list(range(1, 31))
    assert seen[-1] == Ended(State.COMPLETED, "done", None)
    assert sum(isinstance(e, Ended) for e in seen) == 1
    percents = [e.percent for e in seen if isinstance(e, Progressed)]
    assert percents == sorted(percents)
    assert percents[-1] == 100


async def test_a_follower_that_stopped_continues_without_loss_or_repeat(queue: Queue) -> None:
    may_end = asyncio.Event()

    @queue.job
    async def talk(ctx: JobContext) -> None:
        for n in range(10):
            await ctx.emit("line", n)
        await may_end.wait()
        for n in range(10, 20):
            await ctx.emit("line", n)

    handle = await talk.enqueue()
    first: list[int] = []
    async with queue.worker():
        following = handle.events()
        async for event in following:
            if isinstance(event, Emitted):
                first.append(event.number)
                if event.number == 7:
                    break
        await following.aclose()
        may_end.set()
        rest = [e.number async for e in handle.events(after=7) if isinstance(e, Emitted)]
    assert first == list(range(1, 8))
    assert rest == list(range(8, 21))


async def test_events_of_a_job_that_ended_long_ago_can_still_be_read(queue: Queue) -> None:
    @queue.job
    async def talk(ctx: JobContext) -> None:
        await ctx.emit("hello", "world")

    handle = await talk.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    seen: list[Event] = [event async for event in queue.handle(handle.id).events()]
    assert [type(event) for event in seen] == [Emitted, Progressed, Ended]


async def test_too_many_events_are_dropped_and_counted(queue: Queue) -> None:
    total = EVENTS_PER_FLUSH * 3 + 17

    @queue.job
    async def flood(ctx: JobContext) -> None:
        for n in range(total):
            ctx.emit("drop", n)

    handle = await flood.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    events = [e async for e in handle.events() if isinstance(e, Emitted)]
    assert len(events) == EVENTS_PER_FLUSH + 1
    assert events[-1].kind == "howdah.dropped"
    assert events[-1].data == {"count": total - EVENTS_PER_FLUSH}
    assert (await handle.job()).events_count == len(events)


REFUSED: list[tuple[Callable[[Any], object], str]] = [
    (lambda ctx: ctx.progress(101), "progress must be from 0 to 100, not 101"),
    (lambda ctx: ctx.progress(-1), "progress must be from 0 to 100, not -1"),
    (lambda ctx: ctx.progress(float("nan")), "progress must be from 0 to 100, not nan"),
    (lambda ctx: ctx.progress("half"), "progress must be from 0 to 100, not 'half'"),
    (lambda ctx: ctx.emit("", {}), "the kind of an event must be text of 1 to 200 characters"),
    (lambda ctx: ctx.emit("x", float("inf")), "contains inf, which JSON cannot hold"),
    (lambda ctx: ctx.emit("x", "y" * 70_000), "has 70,002 bytes; the limit is 65,536"),
    (lambda ctx: ctx.progress(1, "a\0b"), "a stage must be text"),
]


@pytest.mark.parametrize(("report", "message"), REFUSED)
async def test_an_invalid_report_is_refused_in_the_handler(
    queue: Queue, report: Callable[[JobContext], object], message: str
) -> None:
    @queue.job(max_attempts=1)
    async def wrong(ctx: JobContext) -> None:
        report(ctx)

    handle = await wrong.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match=message):
            await handle.result(timeout=10)
    job = await handle.job()
    assert (job.progress, job.events_count) == (0, 0)


async def test_reports_after_the_end_are_refused_and_change_nothing(queue: Queue) -> None:
    kept: list[JobContext] = []

    @queue.job
    async def leak(ctx: JobContext) -> None:
        kept.append(ctx)

    handle = await leak.enqueue()
    async with queue.worker() as worker:
        await handle.result(timeout=10)
        assert kept[0].lost
        with pytest.raises(Exception, match="no longer this handler's: its attempt has ended"):
            kept[0].progress(10)
        await worker.run_until_idle()
    assert (await handle.job()).progress == 100
