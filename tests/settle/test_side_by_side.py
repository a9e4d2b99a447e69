"""Endings of different kinds are written side by side: one that waits holds no other up."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from uuid import UUID

import psycopg

from howdah import Queue, State
from howdah.claim.claim import Line, claim
from howdah.outcomes import Complete, Ending, Fail
from howdah.settle import Settler
from tests.support.waiting import eventually


async def nothing() -> None:
    """There are no reports to write first."""


async def test_a_batch_that_waits_for_a_lock_holds_no_other_kind_up(queue: Queue, dsn: str) -> None:
    for _ in range(2):
        await queue.enqueue("mail")
    bad, good = await claim(queue.store, "worker", 2, Line(["mail"]))

    async def is_now(id: UUID, state: State) -> bool:
        return (await queue.get(id)).status is state

    settler = Settler(queue.store, "worker", nothing, lambda: True)
    settler.add(Ending(bad, Fail("no")))
    settler.add(Ending(good, Complete()))
    async with await psycopg.AsyncConnection.connect(dsn) as other:
        await other.execute("select from howdah.jobs where id = %s for update", [bad.id])
        task = asyncio.create_task(settler.run())
        await eventually(lambda: is_now(good.id, State.COMPLETED), "the good one is written down")
        assert await is_now(bad.id, State.CLAIMED)
    await settler.flushed()
    assert await is_now(bad.id, State.FAILED)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
