"""Play: hand jobs over, let workers work, cancel one, kill another's worker with -9.

Comes before  promises.py, which asks the database whether it all came out well

The turns of the story wait for what the queue says: the cancel for the export to be under way,
the kill for a worker with long jobs in the middle.
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
from howdah.cli.demo.crew import Crew
from howdah.cli.demo.news import Look, News
from howdah.embedded import join
from howdah.errors import HowdahError
from howdah.job import Draft, Priority
from howdah.states import State
from howdah.store.ask import WorkerHealth

LOOK_EVERY = 0.12  # seconds
PATIENCE = 60.0  # seconds for everything; it takes a third of that


class Played(NamedTuple):
    """How the queue stands at the end, and which worker was killed."""

    look: Look
    counts: dict[str, dict[State, int]]
    killed: str


@asynccontextmanager
async def private_queue() -> AsyncGenerator[tuple[Queue, Path, str]]:
    """Lend a queue on a PostgreSQL of its own, in a folder that is gone afterwards."""
    home = Path(tempfile.mkdtemp(prefix="howdah-demo-"))
    try:
        server = await asyncio.to_thread(join, home)
        try:
            async with Queue(server.dsn) as queue:
                await queue.install()
                yield queue, home, server.dsn
        finally:
            server.stop()
            for folder in (server.home.sockets, server.home.room):
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def drafts(queue: Queue) -> list[Draft]:
    """Make the jobs: three priorities, handed over in no helpful order."""
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


async def play(
    queue: Queue, crew: Crew, tell: Callable[[News], None], see: Callable[[Look], None]
) -> Played:
    """Play it to the end; `tell` hears what the demo does, `see` every look at the queue."""
    began = time.monotonic()

    async def look() -> Look:
        seen = Look(time.monotonic() - began, await queue.jobs(limit=100), await queue.workers())
        see(seen)
        return seen

    def did(command: str) -> None:
        tell(News(time.monotonic() - began, "$", command, "bold"))

    made = drafts(queue)
    await queue.enqueue_many(made)
    did(f"howdah enqueue …   {len(made)} jobs, backfill first and explicit last")
    for _ in range(2):
        did(f"howdah worker …   process {crew.hire()}")

    killed, cancelled = "", False
    while not (now := await look()).over:
        crew.check()
        for job in now.jobs:
            if job.job_type == "export_all" and job.progress >= 30 and not cancelled:
                cancelled = True
                did(f"howdah cancel {job.id}")
                await queue.cancel([job.id], "nobody waits for it any more")
        if not killed and (victim := _victim(now)):
            killed = victim.id
            did(f"kill -9 {victim.info['pid']}")
            crew.kill(int(victim.info["pid"]))
        if now.at > PATIENCE:
            raise HowdahError(f"the jobs did not end within {PATIENCE:.0f} seconds")
        await asyncio.sleep(LOOK_EVERY)
    return Played(now, await queue.counts(), killed)


def _victim(now: Look) -> WorkerHealth | None:
    """Choose a worker in the middle of two long jobs, while there is another to take over."""
    alive = [worker for worker in now.workers if worker.alive]
    for worker in alive:
        held = [job for job in now.jobs if job.worker_id == worker.id and not job.status.finished]
        halfway = [job for job in held if job.job_type == "transcode" and job.progress >= 35]
        busy_with_another_story = any(job.job_type == "fetch_rates" for job in held)
        if len(halfway) >= 2 and len(alive) >= 2 and not busy_with_another_story:
            return worker
    return None
