"""Prepare_days makes the coming days, and puts in order what came before it could."""

from __future__ import annotations

from collections.abc import Generator
from datetime import date

import psycopg
import pytest

from howdah.states import State
from tests.support import Database
from tests.upkeep.days import DAY, finish_one, name, parts_of, today

pytestmark = pytest.mark.engine


def names(parent: str, first: date, days: int) -> set[str]:
    return {name(parent, first + n * DAY) for n in range(days)}


def where_jobs_are(db: Database) -> set[str]:
    return set(db.column("select tableoid::regclass::text from jobs"))


def where_events_are(db: Database) -> set[str]:
    return set(db.column("select tableoid::regclass::text from job_events"))


def test_a_fresh_schema_has_today_and_three_days_ahead(db: Database) -> None:
    for parent in ("jobs_finished", "job_events"):
        assert parts_of(db, parent) == names(parent, today(db), 4) | {f"{parent}_unprepared"}
    assert db.prepare_days() == []


def test_each_day_brings_one_more(db: Database) -> None:
    db.clock.advance(DAY)
    ahead = today(db) + 3 * DAY
    assert set(db.prepare_days()) == {name("job_events", ahead), name("jobs_finished", ahead)}
    assert db.prepare_days() == []


def test_jobs_and_events_go_to_their_day(db: Database) -> None:
    finish_one(db)
    assert where_jobs_are(db) == {name("jobs_finished", today(db))}
    assert where_events_are(db) == {name("job_events", today(db))}


def test_what_came_before_its_day_was_made_is_put_there(db: Database) -> None:
    db.clock.advance(10 * DAY)
    jobs = {finish_one(db), finish_one(db, "other")}
    assert where_jobs_are(db) == {"jobs_finished_unprepared"}
    assert where_events_are(db) == {"job_events_unprepared"}
    before = db.rows("select * from jobs order by id")
    db.prepare_days()
    assert where_jobs_are(db) == {name("jobs_finished", today(db))}
    assert where_events_are(db) == {name("job_events", today(db))}
    assert db.rows("select * from jobs order by id") == before
    assert {row["id"] for row in before} == jobs
    assert db.depth() == {("mail", State.COMPLETED): 1, ("other", State.COMPLETED): 1}
    assert db.depth() == db.counted()


def test_days_that_are_long_over_are_made_as_well(db: Database) -> None:
    db.clock.advance(10 * DAY)
    finish_one(db)
    then = today(db)
    db.clock.advance(3 * DAY)  # nobody prepared anything for three days
    finish_one(db)
    db.prepare_days()
    assert where_jobs_are(db) == {name("jobs_finished", day) for day in (then, today(db))}
    assert where_events_are(db) == {name("job_events", day) for day in (then, today(db))}
    assert db.depth() == db.counted()


def test_a_job_in_a_made_day_can_be_requeued_and_ended_again(db: Database) -> None:
    db.clock.advance(10 * DAY)
    job = db.enqueue("mail")
    db.fail(db.claim("mail"))
    db.prepare_days()
    assert db.requeue(job) == {job}
    db.complete(db.claim("mail"))
    assert db.depth() == {("mail", State.COMPLETED): 1} == db.counted()


def test_while_somebody_reads_it_gives_up_quickly_and_work_goes_on(db: Database) -> None:
    db.clock.advance(10 * DAY)
    reader, worker = db.session(), db.session()
    with reader.transaction():
        reader.value("select count(*) from jobs")
        reader.value("select count(*) from job_events")
        assert db.prepare_days() == []
        job = finish_one(worker)
    assert where_jobs_are(db) == {"jobs_finished_unprepared"}
    assert name("jobs_finished", today(db)) in db.prepare_days()
    assert where_jobs_are(db) == {name("jobs_finished", today(db))}
    assert db.state_of(job) is State.COMPLETED


def test_a_day_is_a_day_in_utc(db: Database) -> None:
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        db.execute(f"set timezone = '{zone}'")
        assert db.prepare_days() == []


def test_a_day_keeps_the_promises_of_its_table(db: Database) -> None:
    db.clock.advance(10 * DAY)
    made = next(name for name in db.prepare_days() if name.startswith("jobs_finished"))
    constraints = (
        "select conname from pg_constraint where contype = 'c' and conrelid = %s::regclass"
    )
    assert set(db.column(constraints, made)) >= set(db.column(constraints, "jobs"))
    indexes = "select count(*) from pg_index where indrelid = %s::regclass"
    assert db.value(indexes, made) == db.value(indexes, "jobs_finished")


def test_a_lock_on_the_unprepared_part_is_not_waited_for(db: Database) -> None:
    db.clock.advance(10 * DAY)
    other = db.session()
    with other.transaction():
        other.execute("lock table jobs_finished_unprepared in access exclusive mode")
        assert db.prepare_days() == []
    assert len(db.prepare_days()) == 8


@pytest.fixture
def loose(dsn: str) -> Generator[Database]:
    """A database without the guard, in which jobs may begin as finished ones.

    And without autovacuum of theirs: prepare_days does not wait for it and leaves the step to the
    next call, which looks here as if nothing were left to do.
    """
    database = Database(dsn)
    database.execute("alter table jobs_finished_unprepared set (autovacuum_enabled = off)")
    yield database
    database.close()


def bring_strays(db: Database, day: date, rows: int) -> None:
    """Finish so many jobs on a day that nobody prepared, in one go."""
    db.execute(
        "insert into jobs_finished_unprepared "
        "(job_type, data, status, attempts, completed_at, finished_on) "
        "select 'mail', '{}', 'completed', 1, %s::date, %s from generate_series(1, %s)",
        day,
        day,
        rows,
    )
    db.execute(
        "insert into finished_counts (day, job_type, status, jobs) "
        "values (%s, 'mail', 'completed', %s)",
        day,
        rows,
    )


def test_many_strays_go_to_their_days_in_steps(loose: Database) -> None:
    """No step holds the table for longer than its share, and none of them hides a job."""
    loose.clock.advance(10 * DAY)
    rows = {today(loose) - 2 * DAY: 60_000, today(loose): 60_001, today(loose) - DAY: 110_000}
    for day, number in rows.items():
        bring_strays(loose, day, number)
    steps: list[set[str]] = []
    while made := loose.prepare_days():
        steps.append({one for one in made if one in {name("jobs_finished", day) for day in rows}})
        assert loose.value("select count(*) from jobs") == sum(rows.values())
        finish_one(loose)  # work goes on between the steps
        rows[today(loose)] += 1
    few, today_, most = (name("jobs_finished", day) for day in rows)
    assert steps == [{few, today_}, {most}], "the fewest first, and so many at a time"
    assert {
        day: loose.value(f"select count(*) from {name('jobs_finished', day)}") for day in rows
    } == rows
    assert loose.value("select count(*) from jobs_finished_unprepared") == 0
    assert loose.depth() == loose.counted()
    finish_one(loose)
    assert today_ in where_jobs_are(loose)


def test_a_day_that_the_unprepared_part_became_is_a_day_like_others(loose: Database) -> None:
    loose.clock.advance(10 * DAY)
    then = today(loose)
    bring_strays(loose, then, 100_001)
    number = "select %s::regclass::oid"
    was = loose.value(number, "jobs_finished_unprepared")
    loose.prepare_days()
    assert where_jobs_are(loose) == {name("jobs_finished", then)}
    assert loose.value(number, name("jobs_finished", then)) == was, "nothing was moved"
    loose.clock.advance(20 * DAY)  # and the new part takes what nobody prepared
    job = finish_one(loose)
    assert loose.value("select tableoid::regclass::text from jobs where id = %s", job) == (
        "jobs_finished_unprepared"
    )
    loose.prepare_days()
    assert name("jobs_finished", then) in loose.prune()
    assert loose.column("select id from jobs") == [job]
    assert loose.depth() == {("mail", State.COMPLETED): 1} == loose.counted()


def test_a_step_that_is_interrupted_loses_nothing(loose: Database) -> None:
    loose.clock.advance(10 * DAY)
    rows = {today(loose) - DAY: 50_000, today(loose): 100_001}
    for day, number in rows.items():
        bring_strays(loose, day, number)
    hasty, killed = loose.session(), loose.session()
    hasty.execute("set statement_timeout = '5ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        hasty.prepare_days()
    killed.execute("begin")
    assert killed.prepare_days()
    loose.execute("select pg_terminate_backend(%s, 10000)", killed.pid)
    with pytest.raises(psycopg.OperationalError):
        killed.execute("commit")
    assert where_jobs_are(loose) == {"jobs_finished_unprepared"}
    while loose.prepare_days():
        pass
    assert {
        day: loose.value(f"select count(*) from {name('jobs_finished', day)}") for day in rows
    } == rows
    assert loose.depth() == loose.counted()


@pytest.mark.parametrize("ahead", ["-1", "367", "2147483647", "null"])
def test_it_makes_days_for_a_year_at_most(db: Database, ahead: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        db.execute(f"select howdah.prepare_days({ahead})")
    assert refused.value.sqlstate == "22023"
