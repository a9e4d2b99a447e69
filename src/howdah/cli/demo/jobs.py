"""Jobs: the job types of the demo, as any program would write them.

Worked on by `howdah worker howdah.cli.demo.jobs:queue`, in processes of their own.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import timedelta

from howdah import Backoff, JobContext, Priority, Queue
from howdah.cli.demo.crew import LIFELINE

queue: Queue = Queue()


@queue.job(priority=Priority.EXPLICIT)
def thumbnail(ctx: JobContext, image: str, width: int) -> str:
    """Run in a thread, as plain functions do."""
    for percent in range(0, 100, 5):
        ctx.progress(percent, "shrinking" if percent < 70 else "writing")
        time.sleep(width / 2000)
    return image.replace(".", "_small.")


@queue.job(priority=Priority.EXPLICIT)
async def report(ctx: JobContext, month: str) -> dict[str, int]:
    await _stages(ctx, 4.0, "querying", "charting", "printing")
    return {"pages": 12}


@queue.job
async def transcode(ctx: JobContext, video: str, minutes: float) -> str:
    await _stages(ctx, minutes, "probing", "encoding", "encoding", "encoding", "muxing")
    await ctx.emit("written", {"video": video})
    return video.replace(".mov", ".mp4")


@queue.job(backoff=Backoff(first=timedelta(seconds=1.5), jitter=0))
async def fetch_rates(ctx: JobContext, source: str) -> int:
    """Fail once, as networks do."""
    await _stages(ctx, 1.5, "connecting", "reading")
    if ctx.attempt == 1:
        raise ConnectionError(f"{source} hung up")
    return 42


@queue.job(fail_on=ValueError)
async def import_orders(ctx: JobContext, file: str) -> None:
    """Fail in a way that trying again would not mend."""
    await _stages(ctx, 2.5, "parsing", "checking")
    raise ValueError(f"{file}, line 17: 'abc' is not an amount")


@queue.job
async def export_all(ctx: JobContext) -> None:
    await _stages(ctx, 12.0, "collecting", "packing")


@queue.job(priority=Priority.BACKFILL)
async def reindex(ctx: JobContext, shard: int) -> int:
    await _stages(ctx, 2.0 + shard / 4, "scanning", "building", "swapping")
    return shard


async def _stages(ctx: JobContext, seconds: float, *stages: str) -> None:
    """Take this long, from stage to stage."""
    steps = max(int(seconds * 8), len(stages))
    for step in range(steps):
        await ctx.progress(100 * step / steps, stages[step * len(stages) // steps])
        await asyncio.sleep(seconds / steps)


def _end_with_the_demo() -> None:
    os.read(0, 1)
    os._exit(1)  # the demo is gone, and its database: nobody is left to hand anything back to


if LIFELINE in os.environ:
    threading.Thread(target=_end_with_the_demo, daemon=True).start()
