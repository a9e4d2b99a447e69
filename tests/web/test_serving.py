"""What a dashboard of a test has started ends with it, so that no test meets another's work."""

from __future__ import annotations

import httpx

from howdah import Queue
from howdah.web.bulk import BULK
from tests.support.waiting import eventually
from tests.web.serving import anybody, hands, served, stop_hands


async def held(queue: Queue) -> None:
    """Leave a bulk job in the hands of another worker."""
    await queue.enqueue(BULK, {})
    assert await queue.claim([BULK], 1, worker_id="w")


async def test_a_dashboard_that_is_served_takes_its_hands_along(queue: Queue) -> None:
    await held(queue)  # they stay as long as somebody else runs it
    async with (
        served(queue, access=anybody()) as where,
        httpx.AsyncClient(base_url=where.url) as client,
    ):
        await client.get("/")
        await eventually(lambda: len(hands()) == 1)
    assert hands() == []


async def test_hands_of_a_dashboard_that_nobody_served_are_stopped_too(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await held(queue)
    await client.get("/")
    await eventually(lambda: len(hands()) == 1)
    await stop_hands()
    assert hands() == []
