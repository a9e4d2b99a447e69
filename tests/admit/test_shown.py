"""What a pending job waits for is one word, and it is the same wherever the job is shown."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from howdah import Queue, SyncQueue, WaitsFor
from howdah.observe import Kind, job_history
from howdah.observe.why import Reason, why_type
from tests.support import Database

HOUR = timedelta(hours=1)


async def retried(queue: Queue, job_type: str, key: str | None) -> UUID:
    id = (await queue.enqueue(job_type, key=key)).id
    await queue.store.fetch("select * from howdah.admit()")
    (job,) = await queue.claim(job_type, worker_id="w")
    await queue.fail(job, "no", delay=HOUR)
    return id


async def test_every_pending_job_waits_for_one_thing(queue: Queue) -> None:
    await queue.store.fetchval("select howdah.set_limit('api', 1)")
    await queue.store.fetchval("select howdah.set_type_limit('call', null, p_limit => 'api')")
    await queue.store.fetchval("select howdah.set_type_limit('book', 1, true)")
    waits = {
        (await queue.enqueue("mail", delay=HOUR)).id: WaitsFor.TIME,
        (await queue.enqueue("mail", key="a", delay=HOUR)).id: WaitsFor.TIME,
        await retried(queue, "mail", None): WaitsFor.RETRY,
        await retried(queue, "mail", "b"): WaitsFor.RETRY,
        await retried(queue, "book", "account-7"): WaitsFor.RETRY,  # and keeps its slot
        (await queue.enqueue("book", key="account-7")).id: WaitsFor.KEY,
        (await queue.enqueue("mail")).id: WaitsFor.WORKER,
        (await queue.enqueue("mail", key="c")).id: WaitsFor.WORKER,
        (await queue.enqueue("call")).id: WaitsFor.WORKER,
        (await queue.enqueue("call")).id: WaitsFor.LIMIT,
    }
    for _ in range(2):
        await queue.store.fetch("select * from howdah.admit()")
    assert {id: (await queue.get(id)).waits_for for id in waits} == waits
    assert {job.id: job.waits_for for job in await queue.jobs()} == waits


async def test_a_job_that_is_not_pending_waits_for_nothing(queue: Queue) -> None:
    handle = await queue.enqueue("mail", key="a")
    await queue.store.fetch("select * from howdah.admit()")
    (job,) = await queue.claim("mail", worker_id="w")
    assert (job.key, job.admission, job.waits_for) == ("a", "admitted", None)
    assert job.arrival is not None
    await queue.complete(job)
    ended = await handle.job()
    assert (ended.key, ended.admission, ended.arrival, ended.waits_for) == ("a", None, None, None)


def test_a_plain_job_has_no_key_and_no_limit(dsn: str) -> None:
    with SyncQueue(dsn) as queue:
        job = queue.enqueue("mail").job()
    assert (job.key, job.limited_by, job.admission, job.arrival) == (None, None, None, None)
    assert job.waits_for is WaitsFor.WORKER


async def test_the_limit_per_key_of_a_job_has_its_key(queue: Queue) -> None:
    await queue.store.fetchval("select howdah.set_limit('api', 1, p_per_key => true)")
    await queue.store.fetchval("select howdah.set_type_limit('call', null, p_limit => 'api')")
    handle = await queue.enqueue("call", key="tenant-7")
    assert (await handle.job()).limited_by == "api:tenant-7"


async def test_the_history_tells_the_wait_for_a_slot_from_the_line(queue: Queue) -> None:
    handles = [await queue.enqueue("mail", key="a") for _ in range(2)]
    await queue.store.fetch("select * from howdah.admit()")
    (job,) = await queue.claim("mail", worker_id="w")
    history = await job_history(queue.store, handles[1].id)
    assert [span.kind for span in history.spans] == [Kind.LIMITED]
    assert history.spans[0].ended is None
    await queue.complete(job)
    history = await job_history(queue.store, handles[1].id)
    assert [span.kind for span in history.spans] == [Kind.LIMITED, Kind.WAITING]
    assert history.spans[0].ended == history.ready_at


async def test_a_type_waits_for_keys_if_no_job_of_it_is_in_line(queue: Queue) -> None:
    for _ in range(2):
        await queue.enqueue("mail", key="tenant-7")
    await queue.store.fetch("select * from howdah.admit()")
    assert (await why_type(queue.store, "mail")).reason is Reason.NO_WORKER
    await queue.claim("mail", worker_id="w")
    answer = await why_type(queue.store, "mail")
    assert answer.reason is Reason.WAITING_FOR_KEY
    assert answer.sentence.startswith("It waits for the key tenant-7: 1 of 1 slots are taken")
    hidden = await why_type(queue.store, "mail", key_as="•••")
    assert hidden.sentence.startswith("It waits for the key •••: ")


async def test_a_type_waits_for_its_limit_if_no_job_of_it_is_in_line(queue: Queue) -> None:
    await queue.store.fetchval("select howdah.set_limit('api', 1)")
    await queue.store.fetchval("select howdah.set_type_limit('call', null, p_limit => 'api')")
    for _ in range(2):
        await queue.enqueue("call")
    await queue.store.fetch("select * from howdah.admit()")
    await queue.claim("call", worker_id="w")
    assert (await why_type(queue.store, "call")).reason is Reason.WAITING_FOR_LIMIT


def test_the_words_for_programs_are_those_of_the_database(db: Database) -> None:
    words = db.rows(
        "select distinct howdah.waits_for(s, a, r, t, e) as word from "
        "unnest(array['pending', 'running']) as s, "
        "unnest(array[null, 'time', 'slot', 'backoff', 'limit', 'admitted']) as a, "
        "unnest(array[null, now()]) as r, unnest(array[0, 1]) as t, unnest(array[null, 'no']) as e"
    )
    assert {row["word"] for row in words} == {None, *map(str, WaitsFor)}
