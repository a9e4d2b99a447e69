"""The first loop that reaches a database again ends the pauses of all the others."""

from __future__ import annotations

import asyncio
import threading

from howdah.growing_pause import GrowingPause
from howdah.reachable import Reachable

AN_HOUR = 3600.0


async def waiting(reachable: Reachable) -> asyncio.Task[None]:
    task = asyncio.create_task(reachable.wait(AN_HOUR))
    await asyncio.sleep(0)
    return task


async def test_a_success_after_a_failure_ends_every_wait() -> None:
    reachable = Reachable()
    pause = GrowingPause(0.1, 5.0, reachable)
    waits = [await waiting(reachable) for _ in range(3)]
    pause.next()
    pause.reset()
    async with asyncio.timeout(10):
        await asyncio.gather(*waits)


async def test_a_success_without_a_failure_ends_no_wait() -> None:
    """A part that fails for a reason of its own keeps its pause while the others succeed."""
    reachable = Reachable()
    pause = GrowingPause(0.1, 5.0, reachable)
    pause.reset()
    pause.next()
    pause.reset()
    pause.reset()
    assert reachable.announced == 1


async def test_a_pause_that_missed_the_announcement_is_short() -> None:
    """Its call began before the server was back, and failed after another one had succeeded."""
    reachable = Reachable()
    pause, other = GrowingPause(0.1, 5.0, reachable), GrowingPause(0.1, 5.0, reachable)
    assert [pause.next() for _ in range(3)] == [0.1, 0.2, 0.4]
    other.next()
    other.reset()
    assert [pause.next() for _ in range(3)] == [0.1, 0.2, 0.4]


async def test_a_wait_ends_with_its_time() -> None:
    await Reachable().wait(0.0)


async def test_a_wait_of_another_thread_ends_too() -> None:
    reachable = Reachable()
    waits, ended = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    async def wait() -> None:
        with reachable.ending(asyncio.Event().set):
            loop.call_soon_threadsafe(waits.set)
            await reachable.wait(AN_HOUR)
        ended.set()

    thread = threading.Thread(target=lambda: asyncio.run(wait()), daemon=True)
    thread.start()
    await waits.wait()
    while not ended.is_set():  # the thread may be between both of its waits
        reachable.announce()
        await asyncio.sleep(0.01)
    thread.join(10)


async def test_a_loop_that_was_closed_stops_no_announcement() -> None:
    reachable = Reachable()
    other = asyncio.new_event_loop()
    ending = reachable.ending(lambda: None)

    async def enter() -> None:
        ending.__enter__()

    await asyncio.to_thread(other.run_until_complete, enter())
    other.close()
    wait = await waiting(reachable)
    reachable.announce()
    async with asyncio.timeout(10):
        await wait
