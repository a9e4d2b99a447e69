"""Planted: a job whose payload and error nobody may read who was not let in."""

from __future__ import annotations

from uuid import UUID

from howdah import Queue

PLANTED = "the planted payload text"


async def planted(queue: Queue) -> UUID:
    """Leave a failed job with the text in its payload and in its error; returns its id."""
    handle = await queue.enqueue("letters", {"note": PLANTED})
    (claim,) = await queue.claim(["letters"], 1, worker_id="w")
    await queue.fail_many([claim], [f"cannot send {PLANTED}"], retry=False)
    return handle.id
