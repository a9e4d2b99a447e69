"""JSON that Python cannot read affects only its own job.

PostgreSQL stores numbers of 131,072 digits; Python reads 4,300. Any SQL client can store one.
"""

from __future__ import annotations

from uuid import UUID

import httpx
import pytest

from howdah import Queue, observe
from howdah.states import State

HUGE = "1" * 5_000
NUMBERS = [HUGE, f"-{HUGE}", f"{HUGE}.5", "1e5000"]


async def store_job(queue: Queue, number: str) -> UUID:
    """Store a job whose payload, result, errors and event hold such a number."""
    document = f'{{"n": {number}}}'
    (row,) = await queue.store.fetch(
        "insert into howdah.jobs (job_type, data, result, errors, events_count) "
        "values ('count', $1::jsonb, $1::jsonb, jsonb_build_array($1::jsonb), 1) returning id",
        document,
    )
    await queue.store.fetch(
        "insert into howdah.job_events (job_id, number, kind, data, attempt, created_at, day) "
        "values ($1, 1, 'said', $2::jsonb, 1, howdah.clock(), howdah.today())",
        row["id"],
        document,
    )
    return row["id"]


@pytest.mark.parametrize("number", NUMBERS, ids=["whole", "negative", "fraction", "power"])
async def test_an_unreadable_number_is_returned_as_text(
    client: httpx.AsyncClient, queue: Queue, number: str
) -> None:
    id = await store_job(queue, number)
    digits = number.strip("-")[:50] if "e" not in number else "1" + "0" * 49
    job = await queue.get(id)
    for text in (job.data, job.result, job.errors):
        assert isinstance(text, str)
        assert digits in text
    assert [job.id for job in await queue.jobs()] == [id]
    life = await observe.job_history(queue.store, id)
    assert life.job == job
    (event,) = life.events
    assert digits in event.data
    for path in (f"/jobs/{id}", f"/jobs/{id}/data.json", f"/api/v1/jobs/{id}", "/jobs"):
        answer = await client.get(path)
        assert answer.status_code == 200
        assert path == "/jobs" or digits in answer.text


async def test_a_worker_fails_only_that_job_and_continues(queue: Queue) -> None:
    @queue.job(name="count", max_attempts=1)
    async def count(n: int) -> int:
        return n

    before = await count.enqueue(1)
    huge = await store_job(queue, HUGE)
    after = await count.enqueue(2)
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert [await before.result(), await after.result()] == [1, 2]
    job = await queue.get(huge)
    assert job.status is State.FAILED
    assert "does not fit count" in (job.last_error or "")
