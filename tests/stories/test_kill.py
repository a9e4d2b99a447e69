"""A worker is killed with -9 while it runs a hundred jobs."""

from __future__ import annotations

import signal

import psutil

from howdah import Emitted, Lease, Queue, State
from tests.support.processes import worker_process
from tests.support.waiting import eventually

APP = "tests.stories.app:queue"
OPTIONS = ("--concurrency", "100", "--silent-after", "1s")
JOBS = 100


async def test_another_worker_finishes_everything_and_late_reports_are_refused(
    queue: Queue, dsn: str
) -> None:
    await queue.enqueue_many(queue.draft("hang_once", {"n": n}) for n in range(JOBS))

    async def all_run() -> bool:
        running = await queue.jobs(status="running", limit=JOBS)
        return sum(job.events_count for job in running) == JOBS

    with worker_process(dsn, APP, *OPTIONS) as killed:
        await eventually(all_run)
        leases = [job.lease for job in await queue.jobs(status="running", limit=JOBS)]
        killed.send_signal(signal.SIGKILL)
        killed.wait()

    async def all_done() -> bool:
        return (await queue.counts())["hang_once"] == {State.COMPLETED: JOBS}

    with worker_process(dsn, APP, *OPTIONS) as second:
        await eventually(all_done)
        second.send_signal(signal.SIGTERM)
        assert second.wait(timeout=20) == 0

    assert await queue.complete_many(leases) == set(), "the dead worker's reports come too late"
    jobs = await queue.jobs(status="completed", limit=JOBS)
    assert {job.attempts for job in jobs} == {2}
    assert sorted(job.result for job in jobs) == list(range(JOBS))
    for job in jobs[:10]:
        began = [e.attempt async for e in queue.handle(job.id).events() if isinstance(e, Emitted)]
        assert began == [1, 2], "each attempt ran once"


async def test_on_the_last_attempt_the_job_fails_with_the_reason(queue: Queue, dsn: str) -> None:
    handle = await queue.enqueue("hang_once", {"n": 1}, max_attempts=1)
    with worker_process(dsn, APP, *OPTIONS) as killed:
        await eventually(lambda: is_running(queue, handle.id))
        lease: Lease = (await handle.job()).lease
        killed.send_signal(signal.SIGKILL)
        killed.wait()
    with worker_process(dsn, APP, *OPTIONS):
        await eventually(lambda: has_failed(queue, handle.id))
    job = await handle.job()
    assert job.last_error is not None
    assert lease.worker_id in job.last_error
    assert "on its last attempt" in job.last_error


async def test_the_child_processes_of_a_killed_worker_end(queue: Queue, dsn: str) -> None:
    handle = await queue.enqueue("in_a_process")
    with worker_process(dsn, APP, *OPTIONS) as killed:
        pid = 0
        async for event in handle.events():
            if isinstance(event, Emitted):
                pid = int(event.data)
                break
        assert psutil.pid_exists(pid)
        killed.send_signal(signal.SIGKILL)
    await eventually(lambda: not psutil.pid_exists(pid))


async def is_running(queue: Queue, id: object) -> bool:
    return (await queue.get(str(id))).status is State.RUNNING


async def has_failed(queue: Queue, id: object) -> bool:
    return (await queue.get(str(id))).status is State.FAILED
