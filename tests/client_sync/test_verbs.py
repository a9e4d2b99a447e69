"""The sync queue does what the async one does, without `await`."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from uuid import uuid4

import pytest

from howdah import (
    BadInput,
    Ended,
    Job,
    JobCancelled,
    JobContext,
    JobFailed,
    JobNotFound,
    Queue,
    StaleLease,
    State,
    SyncQueue,
)


def test_a_job_is_run_and_its_result_comes_back(sync: SyncQueue) -> None:
    @sync.job
    def double(n: int) -> int:
        return n * 2

    handle = double.enqueue(n=21)
    assert handle.status() is State.PENDING
    with sync.worker(concurrency=4):
        assert handle.result(timeout=20) == 42
    assert handle.job().attempts == 1


def test_events_are_a_plain_generator_that_ends_with_the_job(sync: SyncQueue) -> None:
    @sync.job(max_attempts=1)
    async def count(ctx: JobContext, to: int) -> str:
        for n in range(to):
            await ctx.emit("number", {"n": n})
        return "done"

    handle = count.enqueue(to=3)
    with sync.worker():
        events = list(handle.events())
    assert [e.data["n"] for e in events if hasattr(e, "data")] == [0, 1, 2]  # pyright: ignore
    assert events[-1] == Ended(State.COMPLETED, "done", None)
    assert [e.number for e in handle.events(after=2) if hasattr(e, "number")] == [3]  # pyright: ignore


def test_a_failed_job_raises_and_can_be_requeued(sync: SyncQueue) -> None:
    broken = True

    @sync.job(max_attempts=1)
    def fragile() -> str:
        if broken:
            raise ValueError("not today")
        return "well"

    handle = fragile.enqueue()
    with sync.worker():
        with pytest.raises(JobFailed, match="not today"):
            handle.result(timeout=20)
        broken = False
        assert handle.requeue() is True
        assert handle.result(timeout=20) == "well"
    assert handle.requeue() is False


def test_a_job_is_cancelled(sync: SyncQueue) -> None:
    handle = sync.enqueue("mail")
    assert handle.cancel("not needed") is True
    assert handle.cancel() is False
    with pytest.raises(JobCancelled, match="not needed"):
        handle.result(timeout=20)


def test_a_timed_out_wait_does_not_change_the_job(sync: SyncQueue) -> None:
    handle = sync.enqueue("mail")
    with pytest.raises(TimeoutError):
        handle.result(timeout=0.01)
    assert handle.status() is State.PENDING


def test_a_callers_own_loop_claims_and_settles(sync: SyncQueue) -> None:
    sync.enqueue_many(sync.draft("mail", {"n": n}) for n in range(5))
    first, second, third, fourth = sync.claim(["mail"], 4, worker_id="me")
    sync.complete(first, {"sent": True})
    assert sync.complete_many([second]) == {second.id}
    assert sync.fail(third, "no", retry=False) is State.FAILED
    assert sync.release([fourth]) == {fourth.id}
    with pytest.raises(StaleLease):
        sync.complete(first)
    (again,) = sync.claim(["mail"], 1, worker_id="me")
    assert sync.fail_many([again], ["no"], delay=60) == {again.id: State.PENDING}
    assert sync.get(first.id).result == {"sent": True}
    assert sync.counts() == {
        "mail": {State.PENDING: 2, State.COMPLETED: 2, State.FAILED: 1},
    }


def test_reads_and_upkeep(sync: SyncQueue) -> None:
    waiting = sync.enqueue("mail", {"n": 1})
    scheduled = sync.enqueue("sms", delay=timedelta(hours=1))
    assert [job.id for job in sync.jobs(job_type="mail")] == [waiting.id]
    assert sync.cancel([scheduled.id]) == {scheduled.id}
    assert [job.id for job in sync.jobs(status=State.CANCELLED)] == [scheduled.id]
    assert sync.requeue([scheduled.id]) == {scheduled.id}
    assert sync.promote() == 0
    assert sync.recover_stale_jobs() == []
    assert sync.prune() == []
    assert sync.workers() == []
    assert sync.install() is False
    assert sync.handle(str(waiting.id)).job() == sync.get(waiting.id)
    with pytest.raises(JobNotFound):
        sync.get(uuid4())


def test_options_and_drafts_are_those_of_the_function(sync: SyncQueue) -> None:
    @sync.job(name="resize-image", priority=7, max_attempts=5)
    def resize(path: str, width: int = 100) -> None: ...

    plain = resize.draft("a.png")
    assert (plain.job_type, plain.priority, plain.max_attempts) == ("resize-image", 7, 5)
    assert plain.data == '{"path":"a.png","width":100}'
    handle = resize.options(priority=9, delay=60).enqueue(path="b.png", width=1)
    assert (handle.job().priority, handle.job().run_at is not None) == (9, True)
    assert resize.enqueue_many([plain, {"path": "c.png"}]) == 2
    assert resize.name == "resize-image"
    assert resize("here", 3) is None
    assert set(sync.handlers) == {"resize-image"}


def test_wrong_arguments_are_refused_by_name(sync: SyncQueue) -> None:
    @sync.job
    def resize(path: str, width: int) -> None: ...

    with pytest.raises(BadInput, match="width"):
        resize.enqueue("a.png")  # pyright: ignore[reportCallIssue]
    with pytest.raises(BadInput, match="plain iterables, not async_generator"):
        resize.enqueue_many(_async())  # pyright: ignore[reportArgumentType]
    assert sync.counts() == {}


async def _async() -> object:
    yield {}  # pyright: ignore


def test_a_thread_handler_may_enqueue_and_wait_for_more_work(sync: SyncQueue) -> None:
    @sync.job
    def part(n: int) -> int:
        return n * n

    @sync.job
    def whole(to: int) -> int:
        handles = [part.enqueue(n=n) for n in range(to)]
        return sum(handle.result(timeout=20) for handle in handles)

    with sync.worker(concurrency=10):
        assert whole.enqueue(to=4).result(timeout=20) == 14


def test_a_worker_runs_until_it_is_shut_down_from_another_thread(sync: SyncQueue) -> None:
    @sync.job
    def stop_worker() -> str:
        worker.shut_down()
        return "bye"

    handle = stop_worker.enqueue()
    worker = sync.worker()
    running = threading.Thread(target=worker.run)
    running.start()
    running.join(timeout=30)
    assert not running.is_alive()
    assert handle.result(timeout=20) == "bye"


def test_a_closed_queue_can_be_used_again(dsn: str) -> None:
    sync = SyncQueue(dsn)
    handle = sync.enqueue("mail")
    sync.close()
    sync.close()
    with pytest.raises(TimeoutError):
        handle.result(timeout=0.01)
    assert handle.status() is State.PENDING
    sync.close()


def test_many_threads_share_one_queue(sync: SyncQueue) -> None:
    @sync.job
    def echo(n: int) -> int:
        return n

    results: list[int] = []

    def enqueue_and_wait(n: int) -> None:
        results.append(echo.enqueue(n=n).result(timeout=20))

    threads = [threading.Thread(target=enqueue_and_wait, args=(n,)) for n in range(16)]
    with sync.worker():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
    assert sorted(results) == list(range(16))


async def test_jobs_defined_on_an_async_queue_are_enqueued_from_sync_code(queue: Queue) -> None:
    @queue.job(priority=3)
    async def double(n: int) -> int:
        return n * 2

    sync = SyncQueue.of(queue)
    assert sync.asynchronous is queue
    assert sync.handlers == queue.handlers
    sync_double = sync.job_type(double.options(max_attempts=9))

    def view() -> Job:
        return sync_double.enqueue(n=21).job()

    job = await asyncio.to_thread(view)
    assert (job.priority, job.max_attempts) == (3, 9)
    async with queue.worker():
        assert await queue.handle(job.id).result(timeout=20) == 42
    sync.close()


async def test_a_sync_queue_does_not_use_the_connections_of_its_async_queue(queue: Queue) -> None:
    sync = SyncQueue.of(queue)
    async with queue.store.acquire() as connection:
        assert sync.counts() == {}  # blocks this loop
        assert await connection.fetchval("select 1") == 1
    sync.close()
    assert await queue.counts() == {}


def test_a_job_type_of_another_queue_is_refused(sync: SyncQueue, dsn: str) -> None:
    other = Queue(dsn)

    @other.job
    async def foreign() -> None: ...

    with pytest.raises(BadInput, match=r"'foreign'.*registered with another queue"):
        sync.job_type(foreign)


def test_a_label_is_kept(sync: SyncQueue) -> None:
    @sync.job(label="{name}")
    def greet(name: str) -> None: ...

    assert greet.handler.rules.label == "{name}"
