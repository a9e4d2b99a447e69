"""The portal runs every call on one private thread, which can be interrupted and closed."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from typing import Any

import pytest

from howdah import HowdahError, SyncQueue
from howdah.client import portal


def portal_threads() -> list[threading.Thread]:
    return [t for t in threading.enumerate() if t.name == "howdah-portal"]


async def thread_id() -> int:
    return threading.get_ident()


def test_every_call_runs_on_one_daemon_thread() -> None:
    seen = {portal.run(thread_id()) for _ in range(3)}
    (thread,) = portal_threads()
    assert seen == {thread.ident}
    assert thread.daemon


def test_an_error_of_the_coroutine_is_raised() -> None:
    async def broken() -> None:
        raise LookupError("in the coroutine")

    with pytest.raises(LookupError, match="in the coroutine"):
        portal.run(broken())


def raise_timeout(*_: object) -> None:
    raise TimeoutError("raised by a signal handler")


@pytest.mark.parametrize(
    ("handler", "raised"),
    [(signal.default_int_handler, KeyboardInterrupt), (raise_timeout, TimeoutError)],
)
def test_an_interrupt_cancels_the_coroutine(
    handler: Callable[..., Any], raised: type[BaseException]
) -> None:
    is_waiting, cleaned_up = threading.Event(), threading.Event()

    async def wait() -> None:
        try:
            is_waiting.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned_up.set()

    def interrupt() -> None:
        is_waiting.wait(20)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    try:
        with pytest.raises(raised):
            portal.run(wait())
    finally:
        signal.signal(signal.SIGINT, before)
    assert cleaned_up.is_set()
    interrupter.join()


def test_system_exit_ends_the_call_and_not_the_thread() -> None:
    async def exit_process() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        portal.run(exit_process())
    assert portal.run(thread_id()) in {thread.ident for thread in portal_threads()}


def test_a_call_from_the_portal_thread_is_refused(dsn: str) -> None:
    sync = SyncQueue(dsn)

    async def call() -> None:
        sync.counts()

    async def call_many() -> None:
        sync.enqueue_many([])

    for refused in (call(), call_many()):
        with pytest.raises(HowdahError, match="use the async Queue"):
            portal.run(refused)
    assert sync.counts() == {}
    sync.close()


async def test_a_call_from_another_loop_works_and_blocks() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count_turns())
    await asyncio.sleep(0)
    before = turns
    assert portal.run(thread_id()) != threading.get_ident()
    assert turns == before
    task.cancel()


def test_closing_ends_the_thread_and_the_next_call_starts_another() -> None:
    portal.run(thread_id())
    (first,) = portal_threads()
    portal.close()
    portal.close()
    assert not first.is_alive()
    assert portal.run(thread_id()) != threading.get_ident()
    (second,) = portal_threads()
    assert second is not first


def test_close_raises_an_error_in_waiting_calls() -> None:
    is_waiting = threading.Event()
    errors: list[BaseException] = []

    async def wait() -> None:
        is_waiting.set()
        await asyncio.Event().wait()

    def caller() -> None:
        try:
            portal.run(wait())
        except HowdahError as error:
            errors.append(error)

    thread = threading.Thread(target=caller)
    thread.start()
    assert is_waiting.wait(20)
    portal.close()
    thread.join(20)
    (error,) = errors
    assert "the sync queue's thread was ended during this call" in str(error)


# ── streams out ───────────────────────────────────────────────────────────────────────────


def numbers(closed: threading.Event) -> AsyncGenerator[int, None]:
    async def generate() -> AsyncGenerator[int, None]:
        try:
            for n in range(5):
                await asyncio.sleep(0)
                yield n
        finally:
            closed.set()

    return generate()


def test_a_stream_comes_item_by_item() -> None:
    closed = threading.Event()
    assert list(portal.each(numbers(closed))) == [0, 1, 2, 3, 4]
    assert closed.is_set()


def test_a_stream_that_is_not_read_to_the_end_is_closed() -> None:
    closed = threading.Event()
    stream = portal.each(numbers(closed))
    assert next(stream) == 0
    stream.close()
    assert closed.is_set()


def test_a_stream_dropped_on_the_portal_thread_is_closed() -> None:
    closed = threading.Event()
    streams = [portal.each(numbers(closed))]
    assert next(streams[0]) == 0

    async def drop() -> None:
        streams.clear()
        gc.collect()

    portal.run(drop())
    assert closed.wait(20)


# ── streams in ────────────────────────────────────────────────────────────────────────────


def test_the_items_of_a_stream_are_made_in_the_callers_thread() -> None:
    made_in: set[int] = set()

    def source() -> Generator[int]:
        for n in range(3 * portal.CHUNK):
            made_in.add(threading.get_ident())
            yield n

    async def read(stream: AsyncGenerator[int, None]) -> list[int]:
        assert threading.get_ident() not in made_in
        return [item async for item in stream]

    assert portal.feed(source(), read) == list(range(3 * portal.CHUNK))
    assert made_in == {threading.get_ident()}


@pytest.mark.parametrize("size", [0, 1, portal.CHUNK - 1, portal.CHUNK, portal.CHUNK + 1])
def test_a_stream_of_any_length_is_read_completely(size: int) -> None:
    async def read(stream: AsyncGenerator[int, None]) -> int:
        return len([item async for item in stream])

    assert portal.feed(range(size), read) == size


def test_at_most_one_chunk_is_read_ahead() -> None:
    items_made = 0

    def source() -> Generator[int]:
        nonlocal items_made
        while True:
            items_made += 1
            yield items_made

    async def read(stream: AsyncGenerator[int, None]) -> int:
        async for item in stream:
            if item > portal.CHUNK:
                return item
        return 0

    assert portal.feed(source(), read) == portal.CHUNK + 1
    assert items_made == 2 * portal.CHUNK


def test_an_error_of_the_source_is_raised_and_nothing_is_enqueued(
    sync: SyncQueue,
) -> None:
    def source() -> Generator[int]:
        yield from range(2 * portal.CHUNK)
        raise ConnectionError("the file server went away")

    drafts = (sync.draft("mail", {"n": n}) for n in source())
    with pytest.raises(ConnectionError, match="the file server went away"):
        sync.enqueue_many(drafts)
    assert sync.counts() == {}


def test_a_source_may_use_the_queue_while_it_is_read(sync: SyncQueue) -> None:
    first = sync.enqueue("mail", {"n": 0})

    def source() -> Iterable[int]:
        yield len(sync.jobs())

    assert sync.enqueue_many(sync.draft("mail", {"n": n}) for n in source()) == 1
    assert {job.data["n"] for job in sync.jobs()} == {0, 1}
    assert first.status().finished is False


def test_an_interrupt_of_a_stream_enqueues_nothing(sync: SyncQueue) -> None:
    def source() -> Generator[int]:
        yield from range(2 * portal.CHUNK)
        os.kill(os.getpid(), signal.SIGINT)
        yield from range(2 * portal.CHUNK)

    drafts = (sync.draft("mail", {"n": n}) for n in source())
    with pytest.raises(KeyboardInterrupt):
        sync.enqueue_many(drafts)
    assert sync.counts() == {}
