"""Progress and events: a job reports its progress, and others follow it while it runs.

Run it: python examples/progress.py
"""

from __future__ import annotations

import asyncio

from howdah import Emitted, Ended, JobContext, Progressed, Queue

queue = Queue()


@queue.job
async def render(ctx: JobContext, frames: int) -> dict[str, int]:
    for frame in range(frames):
        await ctx.progress(100 * frame / frames, "drawing" if frame < frames // 2 else "encoding")
        await ctx.emit("frame", {"number": frame})
        await asyncio.sleep(0.2)
    return {"frames": frames}


async def main() -> None:
    async with queue, queue.worker():
        handle = await render.enqueue(frames=8)
        # Progress is the state at this moment: quick steps may be skipped. Emitted events are
        # numbered and none is skipped: `handle.events(after=5)` continues after the fifth.
        async for event in handle.events():
            match event:
                case Progressed(status, percent, stage):
                    print(f"{status} {percent}% {stage or ''}")
                case Emitted(number, kind, data):
                    print(f"  event {number}: {kind} {data}")
                case Ended(status, result):
                    print(f"{status}: {result}")


if __name__ == "__main__":
    asyncio.run(main())
