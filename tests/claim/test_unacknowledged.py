"""A claim whose answer was lost is released, and jobs that the worker knows about stay its own."""

from __future__ import annotations

import asyncio
from collections import Counter

from howdah import JobContext, Queue, State
from tests.support.waiting import eventually

CLAIMING = (
    "pg_stat_activity where datname = current_database() and query ~ 'howdah.claim' "
    "and wait_event_type = 'Lock'"
)


async def interrupt_a_claim(operator: Queue) -> None:
    """Let a claim of the worker wait for a lock, and end its session."""

    async with operator.store.acquire() as holder, holder.transaction():
        await holder.execute("lock table howdah.jobs_live in access exclusive mode")
        await eventually(lambda: is_claiming(operator))
        await operator.store.fetch(f"select pg_terminate_backend(pid) from {CLAIMING}")


async def test_jobs_of_a_claim_without_an_answer_are_released(queue: Queue, dsn: str) -> None:
    @queue.job
    async def work() -> str:
        return "done"

    async with Queue(dsn) as other, queue.worker(worker_id="interrupted"):
        handle = await other.enqueue("unanswered")
        # the server ran a claim for this worker, and the worker never got the answer
        (unanswered,) = await other.claim(["unanswered"], worker_id="interrupted")
        await interrupt_a_claim(other)
        await eventually(lambda: is_pending(other, handle.id))
        assert (await other.get(unanswered.id)).attempts == 0, "the attempt is not counted"
        assert await (await work.enqueue()).result(timeout=20) == "done"


async def test_a_running_job_is_not_released(queue: Queue, dsn: str) -> None:
    runs: Counter[int] = Counter()
    may_end = asyncio.Event()

    @queue.job
    async def long(n: int) -> None:
        runs[n] += 1
        await may_end.wait()

    async with Queue(dsn) as other, queue.worker(worker_id="interrupted"):
        for n in range(5):
            await other.enqueue("long", {"n": n})
        await eventually(lambda: len(runs) == 5)
        claimed = {job.id: job.claimed_at for job in await other.jobs(job_type="long")}
        await other.enqueue("unanswered")
        await other.claim(["unanswered"], worker_id="interrupted")
        await interrupt_a_claim(other)
        await eventually(lambda: all_pending(other, "unanswered"))
        assert claimed == {job.id: job.claimed_at for job in await other.jobs(job_type="long")}
        may_end.set()
        await eventually(lambda: all_completed(other, "long", 5))
    assert runs == dict.fromkeys(range(5), 1)


async def test_a_claim_lost_in_a_server_crash_does_not_run_the_job_twice_at_once(
    queue: Queue,
) -> None:
    runs = 0
    may_end = asyncio.Event()

    @queue.job
    async def once(ctx: JobContext) -> str:
        nonlocal runs
        runs += 1
        await may_end.wait()
        return "done"

    async with queue.worker():
        handle = await once.enqueue()
        await eventually(lambda: runs == 1)
        # claims do not wait for the disk: after a crash the job may be pending again
        await queue.store.fetch(
            "update howdah.jobs set status = 'pending', worker_id = null, attempts = 0"
        )
        await eventually(lambda: is_held(queue, handle.id))
        may_end.set()
        assert await handle.result(timeout=20) == "done"
    assert runs == 1
    assert (await handle.job()).attempts == 1


async def is_claiming(queue: Queue) -> bool:
    return await queue.store.fetchval(f"select count(*) > 0 from {CLAIMING}")


async def is_pending(queue: Queue, id: object) -> bool:
    return (await queue.get(str(id))).status is State.PENDING


async def is_held(queue: Queue, id: object) -> bool:
    return (await queue.get(str(id))).worker_id is not None


async def all_pending(queue: Queue, job_type: str) -> bool:
    return set((await queue.counts())[job_type]) == {State.PENDING}


async def all_completed(queue: Queue, job_type: str, jobs: int) -> bool:
    return (await queue.counts())[job_type] == {State.COMPLETED: jobs}


async def test_jobs_claimed_while_the_worker_stops_are_released(queue: Queue, dsn: str) -> None:
    @queue.job
    async def work() -> None: ...

    async with Queue(dsn) as other:
        worker = queue.worker()
        await worker.start()
        async with other.store.acquire() as holder, holder.transaction():
            await holder.execute("lock table howdah.jobs_live in access exclusive mode")
            await eventually(lambda: is_claiming(other))
            worker.shut_down()
            stopping = asyncio.create_task(worker.stop())
            await holder.execute("select howdah.enqueue('work')")
        await stopping
        (job,) = await other.jobs(job_type="work")
    assert (job.status, job.attempts) == (State.PENDING, 0)
