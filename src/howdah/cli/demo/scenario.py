"""Scenario: enqueues jobs, starts workers, cancels a job, kills a worker with -9.

Each step waits for the state of the queue: the cancel until the export is running, the kill
until a worker is in the middle of two long jobs. checks.py examines the result.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from howdah import Queue
from howdah.cli.demo.changes import Change, Snapshot
from howdah.cli.demo.workers import WorkerProcesses
from howdah.embedded import join
from howdah.errors import HowdahError
from howdah.job import Draft, Priority
from howdah.observe.workers import WorkerHealth
from howdah.states import State

POLL_EVERY = 0.12  # seconds
TIME_LIMIT = 60.0  # seconds for the whole scenario, which takes a third of that


class ScenarioResult(NamedTuple):
    """The queue at the end, and the id of the worker that was killed."""

    snapshot: Snapshot
    counts: dict[str, dict[State, int]]
    killed: str


@asynccontextmanager
async def private_queue() -> AsyncGenerator[tuple[Queue, Path, str]]:
    """Open a queue on a private PostgreSQL in a temporary folder; both are removed at the end."""
    home = Path(tempfile.mkdtemp(prefix="howdah-demo-"))
    try:
        server = await asyncio.to_thread(join, home)
        try:
            async with Queue(server.dsn) as queue:
                await queue.install()
                yield queue, home, server.dsn
        finally:
            server.stop()
            for folder in (server.home.sockets, server.home.base):
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def drafts(queue: Queue) -> list[Draft]:
    """Make the jobs: three priorities, the lowest first."""
    backfill, discovered, explicit = Priority.BACKFILL, Priority.DISCOVERED, Priority.EXPLICIT
    make = queue.draft
    videos = {"a.mov": 6.0, "b.mov": 6.5, "c.mov": 7.0, "d.mov": 7.5}
    images = {"x.png": 160, "y.png": 240, "z.png": 320}
    return [
        *(make("reindex", {"shard": n}, priority=backfill) for n in range(1, 6)),
        *(
            make("transcode", {"video": name, "minutes": length}, priority=discovered)
            for name, length in videos.items()
        ),
        make("export_all", priority=discovered),
        make("fetch_rates", {"source": "rates.example"}, priority=discovered),
        make("import_orders", {"file": "orders.csv"}, priority=discovered),
        *(
            make("thumbnail", {"image": name, "width": width}, priority=explicit)
            for name, width in images.items()
        ),
        make("report", {"month": "2030-01"}, priority=explicit),
    ]


async def run_scenario(
    queue: Queue,
    workers: WorkerProcesses,
    on_command: Callable[[Change], None],
    on_snapshot: Callable[[Snapshot], None],
) -> ScenarioResult:
    """Run it to its end; the callbacks get each command of the demo and each snapshot."""
    began = time.monotonic()

    async def take_snapshot() -> Snapshot:
        jobs, health = await queue.jobs(limit=100), await queue.workers()
        snapshot = Snapshot(time.monotonic() - began, jobs, health)
        on_snapshot(snapshot)
        return snapshot

    def report(command: str) -> None:
        on_command(Change(time.monotonic() - began, "$", command, "bold"))

    to_enqueue = drafts(queue)
    await queue.enqueue_many(to_enqueue)
    report(f"howdah enqueue …   {len(to_enqueue)} jobs, backfill first and explicit last")
    for _ in range(2):
        report(f"howdah worker …   process {workers.start()}")

    killed, cancelled = "", False
    while not (now := await take_snapshot()).all_ended:
        workers.check()
        for job in now.jobs:
            if job.job_type == "export_all" and job.progress >= 30 and not cancelled:
                cancelled = True
                report(f"howdah cancel {job.id}")
                await queue.cancel([job.id], "it is not needed any more")
        if not killed and (victim := _worker_to_kill(now)):
            killed = victim.id
            report(f"kill -9 {victim.info['pid']}")
            workers.kill(int(victim.info["pid"]))
        if now.at > TIME_LIMIT:
            raise HowdahError(
                f"the jobs of the demo did not end within {TIME_LIMIT:.0f} seconds: "
                "run it again when the machine is less busy"
            )
        await asyncio.sleep(POLL_EVERY)
    return ScenarioResult(now, await queue.counts(), killed)


def _worker_to_kill(now: Snapshot) -> WorkerHealth | None:
    """Choose a worker in the middle of two long jobs, if another one is alive to take over."""
    alive = [worker for worker in now.workers if worker.alive]
    for worker in alive:
        held = [job for job in now.jobs if job.worker_id == worker.id and not job.status.finished]
        halfway = [job for job in held if job.job_type == "transcode" and job.progress >= 35]
        runs_the_retried_job = any(job.job_type == "fetch_rates" for job in held)
        if len(halfway) >= 2 and len(alive) >= 2 and not runs_the_retried_job:
            return worker
    return None
