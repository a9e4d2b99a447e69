"""Few calls settle many jobs: endings must not pile up behind fast ones, and a call is a commit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from inspect import signature
from uuid import UUID

from howdah import Queue, State
from howdah.claim.claim import Line, claim
from howdah.job import Claim
from howdah.outcomes import Complete, Ending
from howdah.settle import SMALL, Settler
from howdah.states import Verb
from howdah.worker import Worker


async def nothing() -> None:
    """There are no reports to write first."""


async def claimed(queue: Queue, jobs: int) -> list[Claim]:
    await queue.enqueue_many(queue.draft("mail") for _ in range(jobs))
    return await claim(queue.store, "worker", jobs, Line(["mail"]))


@asynccontextmanager
async def settling(
    queue: Queue, more: Callable[[], bool]
) -> AsyncGenerator[tuple[Settler, list[int]]]:
    """Give a settler at work, and how many jobs each of its calls moved."""
    written: list[int] = []

    def count(
        verb: Verb, endings: Sequence[Ending], moved: dict[UUID, State | None], taken_up: float
    ) -> None:
        written.append(len(moved))

    settler = Settler(queue.store, "worker", nothing, lambda: True, count, more)
    task = asyncio.create_task(settler.run())
    yield settler, written
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_the_jobs_of_one_claim_are_settled_by_one_call(queue: Queue) -> None:
    batch_size: int = signature(Worker).parameters["batch_size"].default
    async with settling(queue, more=lambda: False) as (settler, written):
        for one in await claimed(queue, batch_size):
            settler.add(Ending(one, Complete()))
        await settler.flushed()
    assert written == [batch_size]


async def test_the_first_ending_waits_a_moment_for_those_that_follow_at_once(queue: Queue) -> None:
    first, second = await claimed(queue, 2)

    def more() -> bool:
        if not written:
            asyncio.get_running_loop().call_soon(settler.add, Ending(second, Complete()))
        return not written

    async with settling(queue, more) as (settler, written):
        settler.add(Ending(first, Complete()))
        await settler.flushed()
    assert written == [2]


async def test_an_ending_waits_for_nothing_where_no_job_is_held(queue: Queue) -> None:
    first, second = await claimed(queue, 2)

    def more() -> bool:
        if not written:
            asyncio.get_running_loop().call_soon(settler.add, Ending(second, Complete()))
        return False

    async with settling(queue, more) as (settler, written):
        settler.add(Ending(first, Complete()))
        await settler.flushed()
    assert written == [1, 1]


async def test_a_batch_of_some_size_waits_for_nothing(queue: Queue) -> None:
    asked: list[bool] = []

    def more() -> bool:
        asked.append(True)
        return True

    async with settling(queue, more) as (settler, written):
        for one in await claimed(queue, SMALL):
            settler.add(Ending(one, Complete()))
        await settler.flushed()
    assert (written, asked) == ([SMALL], [])
