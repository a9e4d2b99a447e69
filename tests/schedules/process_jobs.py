"""A job that runs in a process: at the top level of a module, so that a child can import it."""

from __future__ import annotations

from howdah import JobContext, Queue

_queue = Queue("postgresql://nobody@127.0.0.1:1/never-opened")


@_queue.job(run="process")
def in_process(ctx: JobContext) -> str:
    return str(ctx.scheduled_for)
