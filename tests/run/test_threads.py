"""Calls in threads: as many at once as allowed, in no more threads than needed."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

import pytest

from howdah.run.thread_pool import ThreadCall, ThreadPool
from tests.support.waiting import eventually


async def test_calls_that_block_all_run_at_once() -> None:
    threads = ThreadPool(20)
    together = threading.Barrier(20, timeout=10)
    for _ in range(5):  # first with new threads, then with sleeping ones
        calls = [threads.submit(together.wait) for _ in range(20)]
        assert sorted(await asyncio.gather(*(call.future for call in calls))) == list(range(20))
    threads.close()


async def test_no_more_calls_run_at_once_than_the_limit() -> None:
    threads, may_end = ThreadPool(3), threading.Event()
    calls = [threads.submit(lambda: may_end.wait(10)) for _ in range(3)]
    fourth = threads.submit(threading.current_thread)
    await eventually(lambda: len(pool_threads()) == 3)
    assert not fourth.future.done()
    may_end.set()
    assert (await fourth.future) in pool_threads()
    await asyncio.gather(*(call.future for call in calls))
    threads.close()


async def test_one_call_after_another_needs_one_thread() -> None:
    threads = ThreadPool(8)
    names = {await threads.submit(lambda: threading.current_thread().name).future for _ in "1234"}
    assert len(names) == 1
    threads.close()


async def test_every_one_of_many_calls_is_answered_once() -> None:
    threads = ThreadPool(4)
    calls = [threads.submit(lambda n=n: n) for n in range(2000)]  # type: ignore[misc]
    assert await asyncio.gather(*(call.future for call in calls)) == list(range(2000))
    threads.close()


async def test_a_call_submitted_while_the_thread_goes_to_sleep_is_run() -> None:
    threads = ThreadPool(1)
    late: list[ThreadCall] = []

    class Waiting(deque[ThreadCall]):
        """Submits a call just after the thread has found the queue empty."""

        def popleft(self) -> ThreadCall:
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


async def test_the_future_raises_the_error_of_the_call() -> None:
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


async def test_a_call_whose_future_is_cancelled_calls_on_end() -> None:
    threads, may_end, ended = ThreadPool(1), threading.Event(), asyncio.Event()
    call = threads.submit(lambda: may_end.wait(10))
    call.future.cancel()
    assert not call.ended
    call.on_end = ended.set
    may_end.set()
    async with asyncio.timeout(10):
        await ended.wait()
    assert call.ended
    threads.close()


async def test_threads_end_after_close_when_their_calls_have_ended() -> None:
    threads, may_end = ThreadPool(2), threading.Event()
    await threads.submit(lambda: None).future
    busy, waiting = threads.submit(lambda: may_end.wait(10)), threads.submit(lambda: "served")
    threads.close()
    may_end.set()
    assert await waiting.future == "served"
    assert await busy.future
    await eventually(lambda: not pool_threads())


def pool_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("howdah-thread")]
