"""Problems come worst first, each once, and a healthy queue has none."""

from __future__ import annotations

from howdah import observe
from howdah.observe import Level, Problem
from tests.observe.support import HOUR, MINUTE, beat_worker, measure, open_store
from tests.support import Database


async def problems(db: Database) -> dict[str, Problem]:
    async with open_store(db) as store:
        listed = await observe.problems(store)
    levels = [problem.level for problem in listed]
    assert levels == sorted(levels, reverse=True)
    assert all(problem.sentence and problem.advice for problem in listed)
    assert len({problem.kind for problem in listed}) == len(listed), listed
    return {problem.kind: problem for problem in listed}


async def test_a_healthy_queue_has_no_problems(db: Database) -> None:
    beat_worker(db, "w", "mail")
    db.enqueue("mail")
    measure(db, "mail", completed=100, failed=1, run=[0, 101])
    assert await problems(db) == {}


async def test_a_type_without_a_worker_is_a_problem(db: Database) -> None:
    beat_worker(db, "w", "mail")
    db.enqueue("mial")
    db.clock.advance(MINUTE / 6)
    reported = await problems(db)
    assert set(reported) == {"no_worker"}
    assert reported["no_worker"].job_type == "mial"
    assert reported["no_worker"].level is Level.CRITICAL
    beat_worker(db, "w", "mail", "mial")
    assert await problems(db) == {}


async def test_a_foreign_worker_that_holds_a_job_counts_as_a_worker_of_its_type(
    db: Database,
) -> None:
    beat_worker(db, "w", "mail")
    db.enqueue_many([{"job_type": "foreign"}] * 2)
    db.claim("foreign", worker="other", batch=1)
    db.clock.advance(MINUTE / 6)
    assert await problems(db) == {}


async def test_a_type_that_falls_behind_is_a_problem(db: Database) -> None:
    db.enqueue_many([{"job_type": "mail"}] * 120)
    db.clock.advance(2 * MINUTE)
    beat_worker(db, "w", "mail")
    measure(db, "mail", completed=60, run=[60])
    reported = await problems(db)
    assert set(reported) == {"falling_behind"}
    assert reported["falling_behind"].level is Level.WARNING
    assert "mail is 2m" in reported["falling_behind"].sentence
    assert "at 1.0/s that is 2m of work" in reported["falling_behind"].sentence
    db.clock.advance(HOUR)
    beat_worker(db, "w", "mail")
    assert (await problems(db))["falling_behind"].level is Level.CRITICAL


async def test_a_high_failure_rate_is_a_problem(db: Database) -> None:
    beat_worker(db, "w", "mail")
    measure(db, "mail", failed=4, run=[4])
    assert await problems(db) == {}, "four attempts are too few for a rate"
    measure(db, "mail", completed=35, retried=1, run=[36])
    reported = await problems(db)
    assert reported["failing"].level is Level.WARNING
    assert "12% of the attempts of mail failed" in reported["failing"].sentence
    measure(db, "mail", failed=60, run=[60])
    assert (await problems(db))["failing"].level is Level.CRITICAL
    db.clock.advance(10 * MINUTE)
    beat_worker(db, "w", "mail")
    assert await problems(db) == {}


async def test_a_paused_type_with_waiting_jobs_is_a_problem(db: Database) -> None:
    beat_worker(db, "w", "mail")
    db.execute("select howdah.pause('mail', 'the relay is down')")
    assert await problems(db) == {}
    db.enqueue("mail")
    db.clock.advance(2 * HOUR)
    beat_worker(db, "w", "mail")
    reported = await problems(db)
    assert set(reported) == {"paused"}
    assert "mail is paused (the relay is down), and 1 job waits." in reported["paused"].sentence


async def test_jobs_of_a_silent_worker_are_a_problem(db: Database) -> None:
    db.beat("gone")
    db.enqueue("mail")
    db.claim("mail", worker="gone")
    db.clock.advance(MINUTE)
    beat_worker(db, "w", "mail")
    reported = await problems(db)
    assert set(reported) == {"stuck", "workers"}
    assert reported["stuck"].worker_id == "gone"


async def test_jobs_held_long_by_a_foreign_worker_are_a_problem(db: Database) -> None:
    beat_worker(db, "w", "mail")
    db.enqueue("mail")
    db.claim("mail", worker="other")
    assert await problems(db) == {}
    db.clock.advance(HOUR)
    beat_worker(db, "w", "mail")
    reported = await problems(db)
    assert set(reported) == {"stuck"}
    assert "foreign worker other has held" in reported["stuck"].sentence


async def test_findings_of_the_doctor_are_problems_too(db: Database) -> None:
    db.execute("update installed set fingerprint = 'other'")
    reported = await problems(db)
    assert set(reported) == {"schema"}
    assert "howdah install" in reported["schema"].advice
