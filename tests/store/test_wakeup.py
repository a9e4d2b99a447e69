"""A worker checks the line once more before it sleeps, whatever wakes it in between.

A producer may look for idle workers just before the worker takes its lock, send no message, and
commit just after the worker has checked. The last check finds that job.
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
async def sleeper(queue: Queue) -> AsyncGenerator[Wakeup]:
    wakeup_under_test = Wakeup(queue.store, poll=A_DAY, knows=lambda _: True, news=lambda _: None)
    await wakeup_under_test.start()
    yield wakeup_under_test
    await wakeup_under_test.stop()


async def wait_ends(sleeper: Wakeup) -> bool:
    """Whether a wait ends by itself, long before the next poll."""
    try:
        async with asyncio.timeout(2):
            await sleeper.wait()
    except TimeoutError:
        return False
    return True


async def test_a_wakeup_while_falling_asleep_does_not_replace_the_last_check(
    sleeper: Wakeup,
) -> None:
    assert await wait_ends(sleeper), "it takes the lock, to check once more"
    sleeper.wake()
    assert await wait_ends(sleeper), "woken: check at once"
    assert await wait_ends(sleeper), "the last check is still to come"
    assert not await wait_ends(sleeper), "then it sleeps until the poll"


async def test_a_worker_that_found_nothing_checks_again_before_it_sleeps(sleeper: Wakeup) -> None:
    """The job may have been locked for a moment, by a follower."""
    for _ in range(3):
        assert await wait_ends(sleeper), "the lock, the wakeup of a new connection, the last check"
    assert not await wait_ends(sleeper), "asleep"
    sleeper.wake()
    assert await wait_ends(sleeper), "woken"
    assert await wait_ends(sleeper), "the last check"
    assert not await wait_ends(sleeper), "asleep again"


async def test_each_call_wakes_the_sleeper(sleeper: Wakeup) -> None:
    for _ in range(4):
        sleeper.wake()
        assert await wait_ends(sleeper)


async def fall_asleep(sleeper: Wakeup) -> None:
    for _ in range(3):
        assert await wait_ends(sleeper), "the lock, the wakeup of a new connection, the last check"
    assert not await wait_ends(sleeper), "asleep"


async def test_a_wakeup_names_the_types_to_check(sleeper: Wakeup, queue: Queue) -> None:
    await fall_asleep(sleeper)
    await queue.store.fetchval("select howdah.wake($1)", ["resize", "mail"])
    assert await sleeper.wait() == ["mail", "resize"]
    await queue.store.fetchval("select howdah.wake($1)", ["mail"])
    assert await sleeper.wait() == ["mail"], "the types of the wakeup before are forgotten"
    assert await sleeper.wait() == [], "the last check is of all types"


async def test_a_wakeup_without_types_means_all_types(sleeper: Wakeup, queue: Queue) -> None:
    await fall_asleep(sleeper)
    sleeper.wake()
    await queue.store.fetchval("select howdah.wake($1)", ["mail"])
    assert await sleeper.wait() == []


async def test_a_worker_that_is_woken_all_the_time_still_checks_all_types(
    sleeper: Wakeup, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job without a wakeup must not wait until there are no other wakeups."""
    await fall_asleep(sleeper)
    await queue.store.fetchval("select howdah.wake($1)", ["mail"])
    assert await sleeper.wait() == ["mail"]
    await queue.store.fetchval("select howdah.wake($1)", ["mail"])
    await eventually(lambda: sleeper._signalled)  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(wakeup, "RECHECK", 0.0)  # as if wakeups had come for so long
    assert await sleeper.wait() == []
