"""A worker that is stopped before it has begun leaves nothing that looks like a worker."""

from __future__ import annotations

import asyncio

import pytest

from howdah import Queue
from howdah.store.wakeup import Wakeup
from tests.support.waiting import eventually


async def test_stopped_on_its_way_in_it_says_goodbye(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    @queue.job
    async def mail() -> None: ...

    async def never(_: Wakeup) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Wakeup, "start", never)
    starting = asyncio.create_task(queue.worker().start())

    async def stands_in_the_table() -> bool:
        return bool(await queue.workers())

    await eventually(stands_in_the_table, "it has beaten")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert await queue.workers() == []
