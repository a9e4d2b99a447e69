"""The program that runs as a worker behind PgBouncer: `howdah worker tests.pgbouncer.app:queue`."""

from __future__ import annotations

from howdah import JobContext, Queue

queue = Queue()


@queue.job
async def double(ctx: JobContext, n: int) -> int:
    await ctx.progress(50, "half")
    await ctx.emit("seen", n)
    return n * 2
