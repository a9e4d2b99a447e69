"""Few calls settle many jobs: each call is a commit, so endings are batched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from inspect import signature
from uuid import UUID

from howdah import Queue, State
from howdah.claim.claim import claim
from howdah.claim.line import Line
from howdah.in_hand import InHand
from howdah.job import Claim
from howdah.outcomes import Complete, Ending
from howdah.run.executor import Attempt
from howdah.settle import SMALL, Settler
from howdah.states import Verb
from howdah.worker import Worker


class Ready(InHand[Attempt]):
    """Jobs in hand; `more` says whether some of them have not started."""

    def __init__(self, more: Callable[[], bool]) -> None:
        super().__init__(slots=10, threads=10)
        self.more = more

    @property
    def has_ready(self) -> bool:
        return self.more()


async def no_reports() -> dict[tuple[UUID, int], str]:
    return {}


async def claimed(queue: Queue, jobs: int) -> list[Claim]:
    await queue.enqueue_many(queue.draft("mail") for _ in range(jobs))
    return await claim(queue.store, "worker", jobs, Line(["mail"]))


@asynccontextmanager
async def settling(
    queue: Queue, more: Callable[[], bool]
) -> AsyncGenerator[tuple[Ready, list[int]]]:
    """Run a settler; gives its jobs in hand and how many jobs each call moved."""
    written: list[int] = []

    def count(
        verb: Verb, endings: Sequence[Ending], moved: dict[UUID, State | None], taken_at: float
    ) -> None:
        written.append(len(moved))

    in_hand = Ready(more)
    settler = Settler(queue.store, "worker", in_hand, no_reports, lambda: None, [count])
    task = asyncio.create_task(settler.run())
    yield in_hand, written
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_the_jobs_of_one_claim_are_settled_by_one_call(queue: Queue) -> None:
    batch_size: int = signature(Worker).parameters["batch_size"].default
    async with settling(queue, more=lambda: False) as (in_hand, written):
        for each in await claimed(queue, batch_size):
            in_hand.add_ending(Ending(each, Complete()))
        await in_hand.wait_until_written()
    assert written == [batch_size]


async def test_the_first_ending_waits_a_moment_for_the_next_ones(queue: Queue) -> None:
    first, second = await claimed(queue, 2)

    def more() -> bool:
        if not written:
            asyncio.get_running_loop().call_soon(in_hand.add_ending, Ending(second, Complete()))
        return not written

    async with settling(queue, more) as (in_hand, written):
        in_hand.add_ending(Ending(first, Complete()))
        await in_hand.wait_until_written()
    assert written == [2]


async def test_an_ending_is_written_at_once_if_no_job_is_held(queue: Queue) -> None:
    first, second = await claimed(queue, 2)

    def more() -> bool:
        if not written:
            asyncio.get_running_loop().call_soon(in_hand.add_ending, Ending(second, Complete()))
        return False

    async with settling(queue, more) as (in_hand, written):
        in_hand.add_ending(Ending(first, Complete()))
        await in_hand.wait_until_written()
    assert written == [1, 1]


async def test_a_batch_that_is_not_small_is_written_at_once(queue: Queue) -> None:
    calls: list[bool] = []

    def more() -> bool:
        calls.append(True)
        return True

    async with settling(queue, more) as (in_hand, written):
        for each in await claimed(queue, SMALL):
            in_hand.add_ending(Ending(each, Complete()))
        await in_hand.wait_until_written()
    assert (written, calls) == ([SMALL], [])
