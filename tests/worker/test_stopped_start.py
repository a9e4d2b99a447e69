"""A worker that is stopped during its start leaves no row and no lock."""

from __future__ import annotations

import asyncio

import pytest

from howdah import Queue
from howdah.store.wakeup import Wakeup
from tests.support.waiting import eventually


async def test_a_worker_that_is_stopped_while_it_starts_removes_its_row(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    @queue.job
    async def mail() -> None: ...

    async def never(_: Wakeup) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Wakeup, "start", never)
    starting = asyncio.create_task(queue.worker().start())

    async def is_registered() -> bool:
        return bool(await queue.workers())

    await eventually(is_registered, "the worker has beaten")
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert await queue.workers() == []
