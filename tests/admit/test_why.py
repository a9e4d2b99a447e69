"""`why` says what a job that is not admitted waits for."""

from __future__ import annotations

from datetime import timedelta

from howdah import Queue, Rate
from howdah.observe.why import Reason, why


async def test_a_job_that_waits_for_its_key(queue: Queue) -> None:
    await queue.store.fetchval("select howdah.set_type_limit('mail', 2)")
    handles = [await queue.enqueue("mail", key="tenant-7") for _ in range(5)]
    await queue.store.fetch("select * from howdah.admit()")
    await queue.claim("mail", worker_id="w")
    answer = await why(queue.store, handles[4].id)
    assert answer.reason is Reason.WAITING_FOR_KEY
    assert answer.sentence.startswith(
        "It waits for the key tenant-7: 2 of 2 slots are taken, the first for "
    )
    assert answer.sentence.endswith("; 2 jobs go before it.")
    last = await why(queue.store, handles[2].id)
    assert last.sentence.endswith("; it is next.")


async def test_a_job_that_waits_for_a_limit(queue: Queue) -> None:
    queue.limit("api", at_once=5, rate=Rate(1, per=timedelta(hours=1), burst=1))

    @queue.job(limit="api")
    async def call() -> None: ...

    async with queue.worker():
        pass
    first, second = await call.enqueue(), await call.enqueue()
    await queue.store.fetch("select * from howdah.admit()")
    await queue.claim("call", worker_id="w")
    await queue.store.fetch("select * from howdah.admit()")
    assert (await why(queue.store, first.id)).reason is Reason.CLAIMED
    answer = await why(queue.store, second.id)
    assert answer.reason is Reason.WAITING_FOR_LIMIT
    assert "1 of 5 slots are taken" in answer.sentence
    assert "its rate lets the next job in at" in answer.sentence
