"""Secret job: a job whose payload and error only an authenticated user may read."""

from __future__ import annotations

from uuid import UUID

from howdah import Queue

SECRET_TEXT = "the secret payload text"


async def make_secret_job(queue: Queue) -> UUID:
    """Make a failed job with the text, a limit, and a schedule with the text; returns its id."""
    handle = await queue.enqueue("letters", {"note": SECRET_TEXT})
    (claim,) = await queue.claim(["letters"], 1, worker_id="w")
    await queue.set_limit("api", at_once=1)
    await queue.schedules.set("nightly", queue.draft("letters", {"note": SECRET_TEXT}), every=60)
    await queue.fail_many([claim], [f"cannot send {SECRET_TEXT}"], retry=False)
    return handle.id
