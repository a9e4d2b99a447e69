"""`run_until_idle` ends when nothing is left, and what is handed back meanwhile is something."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from howdah import Backoff, Queue
from howdah.outcomes import Ending
from howdah.settle import Settler
from howdah.states import State, Verb
from howdah.store import claim as store_claim


async def test_a_job_that_goes_back_while_the_last_endings_are_written_is_done_too(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ending that puts it back in line is written only when the worker has looked and waits."""
    write = Settler._write  # pyright: ignore[reportPrivateUsage]

    async def late(self: Settler, verb: Verb, endings: Sequence[Ending]) -> dict[Any, Any]:
        await asyncio.sleep(0.2)
        return await write(self, verb, endings)

    monkeypatch.setattr(Settler, "_write", late)
    tried: list[int] = []

    @queue.job(max_attempts=2, backoff=Backoff(first=timedelta()))
    async def twice() -> None:
        tried.append(1)
        if len(tried) == 1:
            raise OSError("not yet")

    handle = await twice.enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert (await handle.job()).status is State.COMPLETED


async def test_a_look_that_began_before_is_not_what_was_asked_for(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that comes while a look is under way, by a way that wakes nobody, is done too."""
    looking, go_on = asyncio.Event(), asyncio.Event()
    go_on.set()
    real = store_claim.claim

    async def slow(*args: Any) -> list[Any]:
        claims = await real(*args)
        looking.set()
        await go_on.wait()
        return claims

    monkeypatch.setattr(store_claim, "claim", slow)

    @queue.job
    async def mail() -> None: ...

    async with queue.worker(poll=timedelta(hours=1)) as worker:
        await worker.run_until_idle()
        go_on.clear()
        looking.clear()
        worker._intake._doorbell.ring()  # pyright: ignore[reportPrivateUsage]
        await looking.wait()
        handle = await mail.enqueue()
        idle = asyncio.create_task(worker.run_until_idle())
        await asyncio.sleep(0)
        go_on.set()
        await idle
        assert (await handle.job()).status is State.COMPLETED
