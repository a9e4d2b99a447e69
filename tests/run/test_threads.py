"""Calls in threads: as many at once as there may be, in no more threads than are needed."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

import pytest

from howdah.run.thread_pool import Call, ThreadPool
from tests.support.waiting import eventually


async def test_calls_that_block_are_all_served_at_once() -> None:
    threads = ThreadPool(20)
    together = threading.Barrier(20, timeout=10)
    for _ in range(5):  # with threads that are new, and with threads that sleep
        calls = [threads.submit(together.wait) for _ in range(20)]
        assert sorted(await asyncio.gather(*(call.future for call in calls))) == list(range(20))
    threads.close()


async def test_no_more_are_served_at_once_than_there_may_be() -> None:
    threads, gate = ThreadPool(3), threading.Event()
    calls = [threads.submit(lambda: gate.wait(10)) for _ in range(3)]
    fourth = threads.submit(threading.current_thread)
    await eventually(lambda: len(ours()) == 3)
    assert not fourth.future.done()
    gate.set()
    assert (await fourth.future) in ours()
    await asyncio.gather(*(call.future for call in calls))
    threads.close()


async def test_one_call_after_another_needs_one_thread() -> None:
    threads = ThreadPool(8)
    names = {await threads.submit(lambda: threading.current_thread().name).future for _ in "1234"}
    assert len(names) == 1
    threads.close()


async def test_every_call_is_answered_once_however_many_there_are() -> None:
    threads = ThreadPool(4)
    calls = [threads.submit(lambda n=n: n) for n in range(2000)]  # type: ignore[misc]
    assert await asyncio.gather(*(call.future for call in calls)) == list(range(2000))
    threads.close()


async def test_a_call_that_comes_as_its_thread_falls_asleep_is_served() -> None:
    threads = ThreadPool(1)
    late: list[Call] = []

    class Waiting(deque[Call]):
        """Lets a call come in just after the thread has found none: another took the first."""

        def popleft(self) -> Call:
            call = super().popleft()
            if not late:
                late.append(threads.submit(lambda: "served"))
                raise IndexError
            return call

    threads._waiting = Waiting()  # pyright: ignore[reportPrivateUsage]
    threads.submit(lambda: None)
    await eventually(lambda: bool(late))
    async with asyncio.timeout(10):
        assert await late[0].future == "served"
    threads.close()


async def test_what_a_call_raises_reaches_whoever_waits() -> None:
    def broken() -> None:
        raise LookupError("not there")

    def exhausted() -> None:
        raise StopIteration("at its end")

    threads = ThreadPool(2)
    with pytest.raises(LookupError, match="not there"):
        await threads.submit(broken).future
    with pytest.raises(RuntimeError, match="StopIteration: at its end"):
        await threads.submit(exhausted).future
    threads.close()


async def test_a_call_that_nobody_awaits_any_more_says_when_it_has_ended() -> None:
    threads, gate, ended = ThreadPool(1), threading.Event(), asyncio.Event()
    call = threads.submit(lambda: gate.wait(10))
    call.future.cancel()
    assert not call.ended
    call.then = ended.set
    gate.set()
    async with asyncio.timeout(10):
        await ended.wait()
    assert call.ended
    threads.close()


async def test_threads_end_when_they_are_closed_the_busy_ones_after_their_calls() -> None:
    threads, gate = ThreadPool(2), threading.Event()
    await threads.submit(lambda: None).future
    busy, waiting = threads.submit(lambda: gate.wait(10)), threads.submit(lambda: "served")
    threads.close()
    gate.set()
    assert await waiting.future == "served"
    assert await busy.future
    await eventually(lambda: not ours())


def ours() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name.startswith("howdah-thread")]
