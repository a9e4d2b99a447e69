"""Endings of different verbs are written concurrently: one that waits does not delay others."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from uuid import UUID

import psycopg

from howdah import Queue, State
from howdah.claim.claim import claim
from howdah.claim.line import Line
from howdah.in_hand import InHand
from howdah.outcomes import Complete, Ending, Fail
from howdah.run.executor import Attempt
from howdah.settle import Settler
from tests.support.waiting import eventually


async def no_reports() -> dict[tuple[UUID, int], str]:
    return {}


async def test_a_batch_that_waits_for_a_lock_delays_no_other_verb(queue: Queue, dsn: str) -> None:
    for _ in range(2):
        await queue.enqueue("mail")
    bad, good = await claim(queue.store, "worker", 2, Line(["mail"]))

    async def is_now(id: UUID, state: State) -> bool:
        return (await queue.get(id)).status is state

    in_hand = InHand[Attempt](slots=2, threads=2)
    settler = Settler(queue.store, "worker", in_hand, no_reports, lambda: None)
    in_hand.add_ending(Ending(bad, Fail("no")))
    in_hand.add_ending(Ending(good, Complete()))
    async with await psycopg.AsyncConnection.connect(dsn) as other:
        await other.execute("select from howdah.jobs where id = %s for update", [bad.id])
        task = asyncio.create_task(settler.run())
        await eventually(lambda: is_now(good.id, State.COMPLETED), "the completed job is written")
        assert await is_now(bad.id, State.CLAIMED)
    await settler.flushed()
    assert await is_now(bad.id, State.FAILED)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
