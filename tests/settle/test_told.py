"""Whoever settles is told what moved: all of it, some, or nothing."""

from __future__ import annotations

from uuid import UUID

import pytest

from howdah import Queue
from howdah.claim.claim import Line, claim
from howdah.job import Claim
from howdah.outcomes import Complete, Ending
from howdah.store import settle as store_settle


async def claimed(queue: Queue, jobs: int) -> list[Claim]:
    for _ in range(jobs):
        await queue.enqueue("mail")
    return await claim(queue.store, "me", jobs, Line(["mail"]))


async def complete(queue: Queue, claims: list[Claim]) -> set[UUID]:
    endings = [Ending(one, Complete(), 0.0) for one in claims]
    return await store_settle.complete(queue.store, "me", endings, [None] * len(claims))


@pytest.mark.parametrize("gone", [0, 1, 3])
async def test_complete_tells_what_moved(queue: Queue, gone: int) -> None:
    claims = await claimed(queue, 3)
    await queue.cancel([one.id for one in claims[:gone]])
    assert await complete(queue, claims) == {one.id for one in claims[gone:]}
