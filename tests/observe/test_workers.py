"""Workers: which are alive, which are not, and which jobs each holds."""

from __future__ import annotations

from datetime import timedelta

from howdah import observe
from howdah.observe import WorkerNow
from tests.observe.support import MINUTE, beat_worker, open_store
from tests.support import Database


async def workers(db: Database) -> dict[str, WorkerNow]:
    async with open_store(db) as store:
        return {worker.id: worker for worker in await observe.workers(store)}


async def test_a_worker_is_listed_with_its_info_and_its_jobs(db: Database) -> None:
    beat_worker(db, "w", "mail", slots=7, running=1)
    db.enqueue_many([{"job_type": "mail"}] * 2)
    held, running = db.claim("mail", worker="w", batch=2)
    db.start([running])
    db.progress([running], 40, "encoding")
    worker = (await workers(db))["w"]
    assert (worker.alive, worker.beats, worker.holds, worker.draining) == (True, True, 2, False)
    assert worker.info["slots"] == 7
    assert worker.silent_for is not None
    assert worker.silent_for < MINUTE
    first, second = worker.attempts
    assert (first.id, first.progress, first.current_stage) == (running.id, 40, "encoding")
    assert first.started_at is not None
    assert (second.id, second.started_at, second.attempt) == (held.id, None, 1)


async def test_silent_and_foreign_workers_come_last(db: Database) -> None:
    db.beat("silent")
    db.enqueue_many([{"job_type": "mail"}] * 2)
    db.claim("mail", worker="silent", batch=1)
    db.clock.advance(MINUTE)
    beat_worker(db, "alive", "mail")
    db.claim("mail", worker="foreign", batch=1)
    listed = await workers(db)
    assert list(listed) == ["alive", "silent", "foreign"]
    assert [worker.alive for worker in listed.values()] == [True, False, False]
    assert [worker.beats for worker in listed.values()] == [True, True, False]
    assert [worker.holds for worker in listed.values()] == [0, 1, 1]


async def test_a_worker_is_marked_as_draining_until_it_reads_the_request(db: Database) -> None:
    beat_worker(db, "w", "mail")
    db.execute("select howdah.drain('w')")
    assert (await workers(db))["w"].draining
    assert db.value("select howdah.record_measures('w')") is True
    assert db.value("select howdah.record_measures('w')") is False
    assert not (await workers(db))["w"].draining


async def test_only_the_first_of_many_jobs_are_listed(db: Database) -> None:
    db.beat("w")
    db.enqueue_many([{"job_type": "mail"}] * 50)
    claims = db.claim("mail", worker="w", batch=50)
    db.start(claims[40:41], ran=timedelta(hours=1))
    worker = (await workers(db))["w"]
    assert worker.holds == 50
    assert len(worker.attempts) == 20
    assert worker.attempts[0].id == claims[40].id


async def test_malformed_info_of_a_worker_is_ignored(db: Database) -> None:
    for n, info in enumerate(("[1]", '"x"', '{"job_types": 5, "slots": "many", "running": -1}')):
        db.execute("select howdah.beat(%s, p_info => %s::jsonb)", f"w{n}", info)
    assert len(await workers(db)) == 3
    async with open_store(db) as store:
        assert (await observe.overview(store)).slots == 0
        assert await observe.problems(store) is not None
