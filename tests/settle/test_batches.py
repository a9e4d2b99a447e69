"""What one claim brings is written down in one call: else endings pile up behind fast jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from inspect import signature
from uuid import UUID

from howdah import Queue, State
from howdah.claim import Line, claim
from howdah.outcomes import Complete, Ending
from howdah.settle import Settler
from howdah.states import Verb
from howdah.worker import Worker


async def nothing() -> None:
    """There are no reports to write first."""


async def test_the_jobs_of_one_claim_are_settled_by_one_call(queue: Queue) -> None:
    batch_size: int = signature(Worker).parameters["batch_size"].default
    await queue.enqueue_many(queue.draft("mail") for _ in range(batch_size))
    written: list[int] = []

    def count(
        verb: Verb, endings: Sequence[Ending], moved: dict[UUID, State | None], taken_up: float
    ) -> None:
        written.append(len(moved))

    settler = Settler(queue.store, "worker", nothing, lambda: True, count)
    for one in await claim(queue.store, "worker", batch_size, Line(["mail"])):
        settler.add(Ending(one, Complete()))
    task = asyncio.create_task(settler.run())
    await settler.flushed()
    assert written == [batch_size]
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
