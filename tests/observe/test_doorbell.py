"""A worker that falls asleep glances once more, whatever rings meanwhile.

A producer may look for sleepers just before the worker takes its lock, spare the message, and
commit just after the worker has looked. The glance is for that job.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from howdah import Queue
from howdah.store import wakeup
from howdah.store.wakeup import Wakeup
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

A_DAY = 86400.0


@pytest.fixture
async def bell(queue: Queue) -> AsyncGenerator[Wakeup]:
    made = Wakeup(queue.store, poll=A_DAY, knows=lambda _: True, news=lambda _: None)
    await made.start()
    yield made
    await made.stop()


async def ends(bell: Wakeup) -> bool:
    """Whether a wait ends by itself, long before the next poll."""
    try:
        async with asyncio.timeout(2):
            await bell.wait()
    except TimeoutError:
        return False
    return True


async def test_a_bell_that_rings_while_falling_asleep_does_not_spare_the_glance(
    bell: Wakeup,
) -> None:
    assert await ends(bell), "takes the lock, to look once more"
    bell.ring()
    assert await ends(bell), "rung: to look at once"
    assert await ends(bell), "the glance is still to come"
    assert not await ends(bell), "then it sleeps until the poll"


async def test_who_was_rung_and_found_nothing_glances_before_sleeping_on(bell: Wakeup) -> None:
    """The job may have been locked just then, by whoever asked to be told of its end."""
    for _ in range(3):
        assert await ends(bell), "the lock, the bell of a new connection, the glance"
    assert not await ends(bell), "asleep"
    bell.ring()
    assert await ends(bell), "rung"
    assert await ends(bell), "a glance"
    assert not await ends(bell), "asleep again"


async def test_a_sleeper_wakes_when_it_is_rung(bell: Wakeup) -> None:
    for _ in range(4):
        bell.ring()
        assert await ends(bell)


async def asleep(bell: Wakeup) -> None:
    for _ in range(3):
        assert await ends(bell), "the lock, the bell of a new connection, the glance"
    assert not await ends(bell), "asleep"


async def test_the_bell_names_the_types_to_look_at(bell: Wakeup, queue: Queue) -> None:
    await asleep(bell)
    await queue.store.fetchval("select howdah.wake($1)", ["resize", "mail"])
    assert await bell.wait() == ["mail", "resize"]
    await queue.store.fetchval("select howdah.wake($1)", ["mail"])
    assert await bell.wait() == ["mail"], "what it was rung for before is forgotten"
    assert await bell.wait() == [], "the glance is at everything"


async def test_among_other_bells_one_without_a_name_means_everything(
    bell: Wakeup, queue: Queue
) -> None:
    await asleep(bell)
    bell.ring()
    await queue.store.fetchval("select howdah.wake($1)", ["mail"])
    assert await bell.wait() == []


async def test_who_is_rung_all_the_time_still_looks_at_everything(
    bell: Wakeup, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that rang no bell must not wait until all the others are quiet."""
    await asleep(bell)
    await queue.store.fetchval("select howdah.wake($1)", ["mail"])
    assert await bell.wait() == ["mail"]
    await queue.store.fetchval("select howdah.wake($1)", ["mail"])
    await eventually(lambda: bell._rung)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(wakeup, "RECHECK", 0.0)  # as if it had been rung for so long
    assert await bell.wait() == []
