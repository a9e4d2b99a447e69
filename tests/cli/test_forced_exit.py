"""howdah worker ends after its grace period, whatever its handlers do, and logs what kept it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from howdah import State
from howdah.client.sync import SyncQueue
from tests.cli.support import Cli, started
from tests.support.waiting import wait_until

APP = """
import asyncio, pathlib, threading, time
from howdah import Queue

queue = Queue()

async def swallow():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

@queue.job
async def swallows(file: str) -> None:
    pathlib.Path(file).touch()
    await swallow()

@queue.job(timeout=0.05, max_attempts=1)
async def times_out(file: str) -> None:
    pathlib.Path(file).touch()
    await swallow()

@queue.job
async def starts_tasks(file: str) -> None:
    global task
    task = asyncio.create_task(swallow(), name="a task of mine")
    pathlib.Path(file).touch()
    await asyncio.sleep(3600)

@queue.job
def starts_threads(file: str) -> None:
    threading.Thread(target=time.sleep, args=(3600,), name="a thread of mine", daemon=False).start()
    pathlib.Path(file).touch()
    time.sleep(3600)

@queue.job
async def fills_threads(file: str) -> None:
    pathlib.Path(file).touch()
    await asyncio.gather(*(asyncio.to_thread(time.sleep, 3600) for _ in range(100)))

@queue.job
async def blocks_the_loop(file: str) -> None:
    pathlib.Path(file).touch()
    time.sleep(3600)
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.mark.parametrize(
    ("job_type", "kept_by"),
    [
        ("swallows", None),
        ("starts_tasks", "task a task of mine"),
        ("starts_threads", "thread a thread of mine"),
        ("fills_threads", "_0, thread "),
    ],
)
def test_a_job_that_does_not_stop_is_released_and_the_process_ends(
    app: Path, cli: Cli, jobs: SyncQueue, job_type: str, kept_by: str | None
) -> None:
    handle = jobs.enqueue(job_type, {"file": str(app / "began")})
    with started("worker", "app:queue", "--grace", "100ms", cwd=app, HOWDAH_DSN=cli.dsn) as worker:
        wait_until((app / "began").exists, "the handler has begun")
        worker.terminate()
        _, log = worker.communicate(timeout=45)
    assert worker.returncode == 0, log
    assert ("worker.forced_exit" in log) == (kept_by is not None)
    assert kept_by is None or kept_by in log
    job = handle.job()
    assert (job.status, job.attempts, job.worker_id) == (State.PENDING, 0, None)
    assert jobs.workers() == [], "it has deregistered"


def test_a_timed_out_handler_that_does_not_stop_does_not_keep_the_process(
    app: Path, cli: Cli, jobs: SyncQueue
) -> None:
    handle = jobs.enqueue("times_out", {"file": str(app / "began")}, max_attempts=1)
    with started("worker", "app:queue", "--grace", "1h", cwd=app, HOWDAH_DSN=cli.dsn) as worker:
        wait_until(lambda: handle.status() is State.FAILED, "it is settled as timed out")
        worker.terminate()
        assert worker.wait(45) == 0  # there is nothing to wait for
    assert jobs.workers() == []


@pytest.mark.parametrize("signals", [1, 2])
def test_a_blocked_event_loop_does_not_keep_the_process(
    app: Path, cli: Cli, jobs: SyncQueue, signals: int
) -> None:
    handle = jobs.enqueue("blocks_the_loop", {"file": str(app / "began")})
    grace = "100ms" if signals == 1 else "1h"
    with started("worker", "app:queue", "--grace", grace, cwd=app, HOWDAH_DSN=cli.dsn) as worker:
        wait_until((app / "began").exists, "the handler has begun")
        for number in (signal.SIGTERM, signal.SIGINT)[:signals]:
            worker.send_signal(number)
        _, log = worker.communicate(timeout=45)
    assert worker.returncode == 1, log
    assert "worker.forced_exit code=1 types=blocks_the_loop: the event loop is blocked at" in log
    assert "app.py" in log
    assert "in blocks_the_loop" in log
    job = handle.job()
    assert [worker.id for worker in jobs.workers()] == [job.worker_id], (
        "it has not deregistered, so its job is recovered"
    )
