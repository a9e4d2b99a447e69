"""The bulk tasks of a dashboard end with its test, so that tests do not affect each other."""

from __future__ import annotations

import httpx

from howdah import Queue
from howdah.web.bulk import BULK
from tests.support.waiting import eventually
from tests.web.serving import bulk_tasks, open_access, served, stop_bulk_tasks


async def hold_bulk_job(queue: Queue) -> None:
    """Make a bulk job that another worker holds."""
    await queue.enqueue(BULK, {})
    assert await queue.claim([BULK], 1, worker_id="w")


async def test_a_served_dashboard_stops_its_bulk_tasks(queue: Queue) -> None:
    await hold_bulk_job(queue)  # the bulk tasks wait while another worker runs it
    async with (
        served(queue, access=open_access()) as running,
        httpx.AsyncClient(base_url=running.url) as client,
    ):
        await client.get("/")
        await eventually(lambda: len(bulk_tasks()) == 1)
    assert bulk_tasks() == []


async def test_bulk_tasks_of_a_dashboard_without_a_server_are_stopped(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await hold_bulk_job(queue)
    await client.get("/")
    await eventually(lambda: len(bulk_tasks()) == 1)
    await stop_bulk_tasks()
    assert bulk_tasks() == []
