"""A settling call returns the ids that moved: all, some or none."""

from __future__ import annotations

from uuid import UUID

import pytest

from howdah import Queue
from howdah.claim.claim import claim
from howdah.claim.line import Line
from howdah.job import Claim
from howdah.outcomes import Complete, Ending
from howdah.store import settle as store_settle


async def claimed(queue: Queue, jobs: int) -> list[Claim]:
    for _ in range(jobs):
        await queue.enqueue("mail")
    return await claim(queue.store, "me", jobs, Line(["mail"]))


async def complete(queue: Queue, claims: list[Claim]) -> set[UUID]:
    endings = [Ending(each, Complete(), 0.0) for each in claims]
    return await store_settle.complete(queue.store, "me", endings, [None] * len(claims))


@pytest.mark.parametrize("cancelled", [0, 1, 3])
async def test_complete_returns_the_jobs_that_moved(queue: Queue, cancelled: int) -> None:
    claims = await claimed(queue, 3)
    await queue.cancel([each.id for each in claims[:cancelled]])
    assert await complete(queue, claims) == {each.id for each in claims[cancelled:]}
