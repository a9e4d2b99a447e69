"""Problems come worst first, each once, and a healthy queue has none."""

from __future__ import annotations

from howdah import observe
from howdah.observe import Level, Problem
from tests.observe.support import HOUR, MINUTE, asking, listens, measure
from tests.support import Database


async def problems(db: Database) -> dict[str, Problem]:
    async with asking(db) as store:
        found = await observe.problems(store)
    assert [one.level for one in found] == sorted((one.level for one in found), reverse=True)
    assert all(one.sentence and one.advice for one in found)
    assert len({one.kind for one in found}) == len(found), found
    return {one.kind: one for one in found}


async def test_a_healthy_queue_has_none(db: Database) -> None:
    listens(db, "w", "mail")
    db.enqueue("mail")
    measure(db, "mail", completed=100, failed=1, run=[0, 101])
    assert await problems(db) == {}


async def test_nobody_listens(db: Database) -> None:
    listens(db, "w", "mail")
    db.enqueue("mial")
    db.clock.advance(MINUTE / 6)
    found = await problems(db)
    assert set(found) == {"nobody_listens"}
    assert found["nobody_listens"].job_type == "mial"
    assert found["nobody_listens"].level is Level.CRITICAL
    listens(db, "w", "mail", "mial")
    assert await problems(db) == {}


async def test_a_stranger_at_work_is_a_listener(db: Database) -> None:
    listens(db, "w", "mail")
    db.enqueue_many([{"job_type": "foreign"}] * 2)
    db.claim("foreign", worker="stranger", batch=1)
    db.clock.advance(MINUTE / 6)
    assert await problems(db) == {}


async def test_falling_behind(db: Database) -> None:
    db.enqueue_many([{"job_type": "mail"}] * 120)
    db.clock.advance(2 * MINUTE)
    listens(db, "w", "mail")
    measure(db, "mail", completed=60, run=[60])
    found = await problems(db)
    assert set(found) == {"falling_behind"}
    assert found["falling_behind"].level is Level.WARNING
    assert "mail is 2m" in found["falling_behind"].sentence
    assert "at 1.0/s that is 2m of work" in found["falling_behind"].sentence
    db.clock.advance(HOUR)
    listens(db, "w", "mail")
    assert (await problems(db))["falling_behind"].level is Level.CRITICAL


async def test_failing(db: Database) -> None:
    listens(db, "w", "mail")
    measure(db, "mail", failed=4, run=[4])
    assert await problems(db) == {}, "four are not enough to speak of a rate"
    measure(db, "mail", completed=35, retried=1, run=[36])
    found = await problems(db)
    assert found["failing"].level is Level.WARNING
    assert "12% of the attempts of mail failed" in found["failing"].sentence
    measure(db, "mail", failed=60, run=[60])
    assert (await problems(db))["failing"].level is Level.CRITICAL
    db.clock.advance(10 * MINUTE)
    listens(db, "w", "mail")
    assert await problems(db) == {}


async def test_paused_with_jobs_that_wait(db: Database) -> None:
    listens(db, "w", "mail")
    db.execute("select howdah.pause('mail', 'the relay is down')")
    assert await problems(db) == {}
    db.enqueue("mail")
    db.clock.advance(2 * HOUR)
    listens(db, "w", "mail")
    found = await problems(db)
    assert set(found) == {"paused"}
    assert "mail is paused (the relay is down), and 1 job waits." in found["paused"].sentence


async def test_stuck_in_silent_hands(db: Database) -> None:
    db.beat("gone")
    db.enqueue("mail")
    db.claim("mail", worker="gone")
    db.clock.advance(MINUTE)
    listens(db, "w", "mail")
    found = await problems(db)
    assert set(found) == {"stuck", "workers"}
    assert found["stuck"].worker_id == "gone"


async def test_stuck_in_a_strangers_hands(db: Database) -> None:
    listens(db, "w", "mail")
    db.enqueue("mail")
    db.claim("mail", worker="stranger")
    assert await problems(db) == {}
    db.clock.advance(HOUR)
    listens(db, "w", "mail")
    found = await problems(db)
    assert set(found) == {"stuck"}
    assert "foreign worker stranger has held" in found["stuck"].sentence


async def test_what_the_doctor_finds_is_a_problem_too(db: Database) -> None:
    db.execute("update installed set fingerprint = 'other'")
    found = await problems(db)
    assert set(found) == {"schema"}
    assert "howdah install" in found["schema"].advice
