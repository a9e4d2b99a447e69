"""A worker that falls asleep glances once more, whatever rings meanwhile.

A producer may look for sleepers just before the worker takes its lock, spare the message, and
commit just after the worker has looked. The glance is for that job.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from howdah import Queue
from howdah.store.doorbell import Doorbell

A_DAY = 86400.0


@pytest.fixture
async def bell(queue: Queue) -> AsyncGenerator[Doorbell]:
    made = Doorbell(queue.store, poll=A_DAY, knows=lambda _: True, news=lambda _: None)
    await made.start()
    yield made
    await made.stop()


async def ends(bell: Doorbell) -> bool:
    """Whether a wait ends by itself, long before the next poll."""
    try:
        async with asyncio.timeout(2):
            await bell.wait()
    except TimeoutError:
        return False
    return True


async def test_a_bell_that_rings_while_falling_asleep_does_not_spare_the_glance(
    bell: Doorbell,
) -> None:
    assert await ends(bell), "takes the lock, to look once more"
    bell.ring()
    assert await ends(bell), "rung: to look at once"
    assert await ends(bell), "the glance is still to come"
    assert not await ends(bell), "then it sleeps until the poll"


async def test_a_sleeper_wakes_when_it_is_rung(bell: Doorbell) -> None:
    for _ in range(4):
        bell.ring()
        assert await ends(bell)
