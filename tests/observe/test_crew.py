"""The crew: who is alive, who is not, and what each has in hands."""

from __future__ import annotations

from datetime import timedelta

from howdah import observe
from howdah.observe import WorkerNow
from tests.observe.support import MINUTE, asking, listens
from tests.support import Database


async def crew(db: Database) -> dict[str, WorkerNow]:
    async with asking(db) as store:
        return {one.id: one for one in await observe.crew(store)}


async def test_a_worker_tells_what_it_is_and_what_it_runs_now(db: Database) -> None:
    listens(db, "w", "mail", slots=7, running=1)
    db.enqueue_many([{"job_type": "mail"}] * 2)
    held, running = db.claim("mail", worker="w", batch=2)
    db.start([running])
    db.progress([running], 40, "encoding")
    one = (await crew(db))["w"]
    assert (one.alive, one.beats, one.holds, one.draining) == (True, True, 2, False)
    assert one.info["slots"] == 7
    assert one.silent_for is not None
    assert one.silent_for < MINUTE
    first, second = one.attempts
    assert (first.id, first.progress, first.current_stage) == (running.id, 40, "encoding")
    assert first.started_at is not None
    assert (second.id, second.started_at, second.attempt) == (held.id, None, 1)


async def test_the_silent_and_the_strangers_come_last(db: Database) -> None:
    db.beat("silent")
    db.enqueue_many([{"job_type": "mail"}] * 2)
    db.claim("mail", worker="silent", batch=1)
    db.clock.advance(MINUTE)
    listens(db, "alive", "mail")
    db.claim("mail", worker="stranger", batch=1)
    seen = await crew(db)
    assert list(seen) == ["alive", "silent", "stranger"]
    assert [one.alive for one in seen.values()] == [True, False, False]
    assert [one.beats for one in seen.values()] == [True, True, False]
    assert [one.holds for one in seen.values()] == [0, 1, 1]


async def test_one_that_was_asked_to_drain_is_marked_until_it_hears(db: Database) -> None:
    listens(db, "w", "mail")
    db.execute("select howdah.drain('w')")
    assert (await crew(db))["w"].draining
    assert db.value("select howdah.record_measures('w')") is True
    assert db.value("select howdah.record_measures('w')") is False
    assert not (await crew(db))["w"].draining


async def test_of_many_jobs_the_first_are_shown(db: Database) -> None:
    db.beat("w")
    db.enqueue_many([{"job_type": "mail"}] * 50)
    claims = db.claim("mail", worker="w", batch=50)
    db.start(claims[40:41], ran=timedelta(hours=1))
    one = (await crew(db))["w"]
    assert one.holds == 50
    assert len(one.attempts) == 20
    assert one.attempts[0].id == claims[40].id


async def test_info_of_another_make_breaks_nothing(db: Database) -> None:
    for n, info in enumerate(("[1]", '"x"', '{"job_types": 5, "slots": "many", "running": -1}')):
        db.execute("select howdah.beat(%s, p_info => %s::jsonb)", f"w{n}", info)
    assert len(await crew(db)) == 3
    async with asking(db) as store:
        assert (await observe.overview(store)).slots == 0
        assert await observe.problems(store) is not None
