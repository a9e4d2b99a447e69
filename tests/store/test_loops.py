"""One queue in several event loops: a pool for each, bounded, and closed with its loop."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import warnings
from collections.abc import Callable, Coroutine, Generator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from howdah import BadInput, Queue, Unreachable
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

CONNECTIONS = """
    select count(*) from pg_stat_activity
    where application_name = 'howdah' and datname = current_database()
"""


class _ConnectionCounter:
    """Counts howdah's connections through a connection of its own."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self.most = 0

    def count(self) -> int:
        row = self._connection.execute(CONNECTIONS).fetchone()  # pyright: ignore
        assert row is not None
        self.most = max(self.most, row[0])
        return row[0]

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def counter(dsn: str) -> Generator[_ConnectionCounter]:
    counter = _ConnectionCounter(dsn)
    yield counter
    counter.close()


def _in_threads(n: int, work: Callable[[], Any]) -> None:
    """Run `work` in `n` threads; raise the first error of any thread."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


async def test_a_thread_handler_may_run_its_own_event_loops(
    dsn: str, counter: _ConnectionCounter
) -> None:
    """Its jobs are enqueued, the worker continues, and no connection is left open."""
    async with Queue(dsn) as queue:

        @queue.job
        def child(n: int) -> None: ...

        @queue.job
        def parent(n: int) -> None:
            for i in range(5):
                asyncio.run(child.enqueue(n=i))

        await parent.enqueue_many(parent.draft(n=n) for n in range(20))
        async with queue.worker(concurrency=20) as worker:
            working = asyncio.create_task(worker.run_until_idle())
            while not working.done():
                counter.count()
                await asyncio.sleep(0.005)
            await working
            await eventually(
                lambda: counter.count() <= 8 + 2, "the connections of ended loops are closed"
            )
        counts = await queue.counts()
        assert counts["child"] == {"completed": 100}
    # the worker's pool, beat and listener; the threads' loops; some that are being closed
    assert counter.most <= 2 * 8 + 2 + 8, counter.most


def test_the_connections_of_a_loop_are_closed_with_it(
    dsn: str, counter: _ConnectionCounter
) -> None:
    queue = Queue(dsn)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(10):
            _run(queue.enqueue("mail"))
            gc.collect()
        _run(
            eventually(
                lambda: counter.count() == 0, "the connections are closed though the queue is not"
            )
        )


def test_two_long_loops_keep_their_connections(dsn: str, counter: _ConnectionCounter) -> None:
    queue = Queue(dsn, connections=2)
    barrier = threading.Barrier(2, timeout=20)
    backends: list[set[int]] = []

    async def work() -> None:
        own: set[int] = set()
        for _ in range(30):
            own.add(await queue.store.fetchval("select pg_backend_pid()"))
        barrier.wait()
        own.add(await queue.store.fetchval("select pg_backend_pid()"))
        barrier.wait()
        backends.append(own)

    _in_threads(2, lambda: _run(work()))
    assert [len(own) for own in backends] == [1, 1], "no connection was opened twice"
    assert not backends[0] & backends[1]


def test_many_loops_at_once_stay_within_the_limit(dsn: str, counter: _ConnectionCounter) -> None:
    """All loops together open at most twice `connections`; other calls wait."""
    queue = Queue(dsn, connections=2)
    most = 0
    mutex, at_once = threading.Lock(), 0

    async def work() -> None:
        nonlocal most, at_once
        async with queue.store.acquire() as connection:
            with mutex:
                at_once += 1
                most = max(most, at_once)
            await connection.fetchval("select pg_sleep(0.02)")
            with mutex:
                at_once -= 1

    _in_threads(20, lambda: [_run(work()) for _ in range(3)])
    assert most <= 4
    _run(eventually(lambda: counter.count() == 0))


def test_an_idle_loop_gives_up_a_connection_that_another_needs(dsn: str) -> None:
    queue = Queue(dsn, connections=1)
    ready, done = threading.Barrier(3, timeout=20), threading.Event()

    async def hold() -> None:
        await queue.enqueue("mail")  # its pool now has an idle connection
        ready.wait()
        while not done.is_set():
            await asyncio.sleep(0.01)
        await queue.enqueue("mail")

    holders = [threading.Thread(target=lambda: _run(hold())) for _ in range(2)]
    for holder in holders:
        holder.start()
    ready.wait()
    _run(queue.enqueue("mail"))
    done.set()
    for holder in holders:
        holder.join(20)

    assert _run(_count_mails(queue)) == 5


async def _count_mails(queue: Queue) -> int:
    return sum((await queue.counts())["mail"].values())


def test_a_loop_that_gets_no_connection_fails_with_the_reason(dsn: str) -> None:
    queue = Queue(dsn, connections=1, call_timeout=timedelta(seconds=0.2))
    ready, done = threading.Barrier(3, timeout=20), threading.Event()

    async def hold() -> None:
        async with queue.store.acquire():
            ready.wait()
            while not done.is_set():
                await asyncio.sleep(0.01)

    holders = [threading.Thread(target=lambda: _run(hold())) for _ in range(2)]
    for holder in holders:
        holder.start()
    ready.wait()
    try:
        with pytest.raises(Unreachable, match=r"all 2 connections .* event loops .*connections="):
            _run(queue.enqueue("mail"))
    finally:
        done.set()
        for holder in holders:
            holder.join(20)
    _run(queue.enqueue("mail"))


def test_closing_in_one_loop_keeps_the_connections_of_the_other(dsn: str) -> None:
    async def main() -> None:
        async with Queue(dsn) as queue:
            before = await queue.store.fetchval("select pg_backend_pid()")

            async def elsewhere() -> None:
                async with queue:
                    await queue.enqueue("mail")

            await asyncio.to_thread(_run, elsewhere())
            assert await queue.store.fetchval("select pg_backend_pid()") == before

    _run(main())


def test_a_job_is_followed_in_two_loops_at_once(dsn: str) -> None:
    async def main() -> None:
        async with Queue(dsn) as queue:

            @queue.job
            async def double(n: int) -> int:
                return 2 * n

            first, second = await double.enqueue(n=1), await double.enqueue(n=2)
            waits = asyncio.create_task(first.result(timeout=20))
            elsewhere = asyncio.create_task(asyncio.to_thread(_run, second.result(timeout=20)))
            await asyncio.sleep(0)
            async with queue.worker():
                assert await waits == 2
                assert await elsewhere == 4

    _run(main())


@pytest.mark.leaks_connections  # the loop is closed before its connections
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # for the loop's own sockets
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_connections_of_a_loop_closed_without_shutdown_are_closed(
    dsn: str, counter: _ConnectionCounter
) -> None:
    """`loop.close()` alone ends no async generators: the next loop closes the connections."""
    queue = Queue(dsn)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(queue.enqueue("mail"))
    loop.close()
    _run(queue.enqueue("mail"))
    _run(eventually(lambda: counter.count() == 0))
    del loop
    gc.collect()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_opens_its_own_connections(dsn: str) -> None:
    queue = Queue(dsn, connections=1)

    async def main() -> None:
        before = await queue.store.fetchval("select pg_backend_pid()")
        child = os.fork()
        if child == 0:
            try:
                asyncio.run(queue.enqueue("mail"))
                gc.collect()
                os._exit(0)
            except BaseException:
                os._exit(1)
        _, status = await asyncio.to_thread(os.waitpid, child, 0)
        assert os.waitstatus_to_exitcode(status) == 0
        assert await queue.store.fetchval("select pg_backend_pid()") == before
        assert await _count_mails(queue) == 1
        await queue.close()

    # asyncio compares process ids, so the child does not see the running loop
    asyncio.run(main())


@pytest.mark.parametrize("connections", [0, -1, True, 1.5, "8", None, 1001, 10**30])
def test_a_bad_number_of_connections_is_refused(connections: Any) -> None:
    with pytest.raises(BadInput, match=r"connections must be a whole number from 1 to 1000, not "):
        Queue("postgresql://localhost/x", connections=connections)
