"""Jobs: the job types of the demo, written like those of any program.

The workers of the demo run them: `howdah worker howdah.cli.demo.jobs:queue`.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from datetime import timedelta

from howdah import Backoff, JobContext, Priority, Queue
from howdah.cli.demo.workers import END_WITH_STDIN

queue: Queue = Queue()


@queue.job(priority=Priority.EXPLICIT)
def thumbnail(ctx: JobContext, image: str, width: int) -> str:
    """A plain function: it runs in a thread."""
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
    """Fail on the first attempt."""
    await _stages(ctx, 1.5, "connecting", "reading")
    if ctx.attempt == 1:
        raise ConnectionError(f"{source} hung up")
    return 42


@queue.job(fail_on=ValueError)
async def import_orders(ctx: JobContext, file: str) -> None:
    """Fail in a way that a retry cannot fix."""
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
    """Run for this long, through these stages."""
    steps = max(int(seconds * 8), len(stages))
    for step in range(steps):
        await ctx.progress(100 * step / steps, stages[step * len(stages) // steps])
        await asyncio.sleep(seconds / steps)


def _end_with_the_demo() -> None:
    os.read(0, 1)
    os._exit(1)  # the demo and its database have ended, so no job can be released


if END_WITH_STDIN in os.environ:
    threading.Thread(target=_end_with_the_demo, daemon=True).start()
