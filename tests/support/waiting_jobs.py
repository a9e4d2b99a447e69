"""Waiting jobs: put a job to sleep as a worker does, without one."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID

from howdah import Queue

WORKER = "sleeper"


async def waiting_job(
    queue: Queue, signal: str = "approved", timeout: timedelta | None = None
) -> UUID:
    """Make a job that has a step and waits for a signal."""
    id, attempt = await _claimed(queue)
    await queue.store.fetch(
        "select howdah.save_steps($1, $2, $3, '{step}', '{charge}', '{1}', '{charge}', "
        "'{\"4111\"}', '{3 seconds}')",
        *(WORKER, [id], [attempt]),
    )
    await queue.store.fetch(
        "select howdah.await_signals($1, $2, $3, $4, '{1}', $5)",
        *(WORKER, [id], [attempt], [signal], [timeout]),
    )
    await _suspend(queue, id, attempt, "signal", signal)
    return id


async def sleeping_job(queue: Queue, lasts: timedelta) -> UUID:
    """Make a job that sleeps."""
    id, attempt = await _claimed(queue)
    await queue.store.fetch(
        "select howdah.save_steps($1, $2, $3, '{sleep}', '{sleep}', '{1}', p_lasts => $4)",
        *(WORKER, [id], [attempt], [lasts]),
    )
    await _suspend(queue, id, attempt, "sleep", "sleep")
    return id


async def _claimed(queue: Queue) -> tuple[UUID, int]:
    await queue.enqueue("order")
    (job,) = await queue.claim(["order"], 1, worker_id=WORKER)
    return job.id, job.attempts


async def _suspend(queue: Queue, id: UUID, attempt: int, kind: str, name: str) -> None:
    blocked = json.dumps([[kind, name, 1]])
    await queue.store.fetch(
        "select howdah.suspend($1, $2, $3, $4)", WORKER, [id], [attempt], [blocked]
    )
