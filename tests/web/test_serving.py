"""What a dashboard of a test has started ends with it, so that no test meets another's work."""

from __future__ import annotations

from datetime import timedelta

import httpx

from howdah import Queue
from howdah.web.bulk import BULK
from tests.support.waiting import eventually
from tests.web.serving import anybody, hands, served, stop_hands


async def test_a_dashboard_that_is_served_takes_its_hands_along(queue: Queue) -> None:
    await queue.enqueue(BULK, {}, delay=timedelta(hours=1))  # they stay as long as it waits
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
    await queue.enqueue(BULK, {}, delay=timedelta(hours=1))
    await client.get("/")
    await eventually(lambda: len(hands()) == 1)
    await stop_hands()
    assert hands() == []
