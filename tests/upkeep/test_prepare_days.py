"""prepare_days creates the partitions of the coming days, and moves rows that came too early."""

from __future__ import annotations

from collections.abc import Generator
from datetime import date

import psycopg
import pytest

from howdah.states import State
from tests.support import Database
from tests.upkeep.day_partitions import DAY, finish_one, name, parts_of, today

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


def test_each_day_adds_one_partition_per_table(db: Database) -> None:
    db.clock.advance(DAY)
    ahead = today(db) + 3 * DAY
    assert set(db.prepare_days()) == {name("job_events", ahead), name("jobs_finished", ahead)}
    assert db.prepare_days() == []


def test_jobs_and_events_go_to_their_day(db: Database) -> None:
    finish_one(db)
    assert where_jobs_are(db) == {name("jobs_finished", today(db))}
    assert where_events_are(db) == {name("job_events", today(db))}


def test_rows_of_an_unprepared_day_are_moved_to_its_partition(db: Database) -> None:
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


def test_partitions_of_past_days_are_created_too(db: Database) -> None:
    db.clock.advance(10 * DAY)
    finish_one(db)
    then = today(db)
    db.clock.advance(3 * DAY)  # no day was prepared for three days
    finish_one(db)
    db.prepare_days()
    assert where_jobs_are(db) == {name("jobs_finished", day) for day in (then, today(db))}
    assert where_events_are(db) == {name("job_events", day) for day in (then, today(db))}
    assert db.depth() == db.counted()


def test_a_job_in_a_new_partition_can_be_requeued_and_ended_again(db: Database) -> None:
    db.clock.advance(10 * DAY)
    job = db.enqueue("mail")
    db.fail(db.claim("mail"))
    db.prepare_days()
    assert db.requeue(job) == {job}
    db.complete(db.claim("mail"))
    assert db.depth() == {("mail", State.COMPLETED): 1} == db.counted()


def test_during_a_read_it_gives_up_quickly_and_workers_continue(db: Database) -> None:
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


def test_a_partition_has_the_constraints_and_indexes_of_its_table(db: Database) -> None:
    db.clock.advance(10 * DAY)
    made = next(name for name in db.prepare_days() if name.startswith("jobs_finished"))
    constraints = (
        "select conname from pg_constraint where contype = 'c' and conrelid = %s::regclass"
    )
    assert set(db.column(constraints, made)) >= set(db.column(constraints, "jobs"))
    indexes = "select count(*) from pg_index where indrelid = %s::regclass"
    assert db.value(indexes, made) == db.value(indexes, "jobs_finished")


def test_it_does_not_wait_for_a_lock_on_the_unprepared_partition(db: Database) -> None:
    db.clock.advance(10 * DAY)
    other = db.session()
    with other.transaction():
        other.execute("lock table jobs_finished_unprepared in access exclusive mode")
        assert db.prepare_days() == []
    assert len(db.prepare_days()) == 8


@pytest.fixture
def unguarded(dsn: str) -> Generator[Database]:
    """A database without the test guard, so that jobs can be inserted as finished.

    Autovacuum of the partition is off: prepare_days does not wait for it and leaves the step to the
    next call, and here that would look as if no step were left.
    """
    database = Database(dsn)
    database.execute("alter table jobs_finished_unprepared set (autovacuum_enabled = off)")
    yield database
    database.close()


def insert_unprepared(db: Database, day: date, rows: int) -> None:
    """Insert this many finished jobs of a day that is not prepared."""
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


def test_many_unprepared_rows_are_moved_in_steps(unguarded: Database) -> None:
    """Each step moves a limited number of rows, and every job stays visible."""
    unguarded.clock.advance(10 * DAY)
    rows = {
        today(unguarded) - 2 * DAY: 60_000,
        today(unguarded): 60_001,
        today(unguarded) - DAY: 110_000,
    }
    for day, number in rows.items():
        insert_unprepared(unguarded, day, number)
    steps: list[set[str]] = []
    while made := unguarded.prepare_days():
        steps.append(
            {part for part in made if part in {name("jobs_finished", day) for day in rows}}
        )
        assert unguarded.value("select count(*) from jobs") == sum(rows.values())
        finish_one(unguarded)  # workers continue between the steps
        rows[today(unguarded)] += 1
    smallest, today_, largest = (name("jobs_finished", day) for day in rows)
    assert steps == [{smallest, today_}, {largest}], (
        "the smallest days first, a limited number of rows per step"
    )
    assert {
        day: unguarded.value(f"select count(*) from {name('jobs_finished', day)}") for day in rows
    } == rows
    assert unguarded.value("select count(*) from jobs_finished_unprepared") == 0
    assert unguarded.depth() == unguarded.counted()
    finish_one(unguarded)
    assert today_ in where_jobs_are(unguarded)


def test_the_unprepared_partition_can_become_the_partition_of_a_day(unguarded: Database) -> None:
    unguarded.clock.advance(10 * DAY)
    then = today(unguarded)
    insert_unprepared(unguarded, then, 100_001)
    oid = "select %s::regclass::oid"
    oid_before = unguarded.value(oid, "jobs_finished_unprepared")
    unguarded.prepare_days()
    assert where_jobs_are(unguarded) == {name("jobs_finished", then)}
    assert unguarded.value(oid, name("jobs_finished", then)) == oid_before, "no row was moved"
    unguarded.clock.advance(20 * DAY)  # and the new unprepared partition gets the rows
    job = finish_one(unguarded)
    assert unguarded.value("select tableoid::regclass::text from jobs where id = %s", job) == (
        "jobs_finished_unprepared"
    )
    unguarded.prepare_days()
    assert name("jobs_finished", then) in unguarded.prune()
    assert unguarded.column("select id from jobs") == [job]
    assert unguarded.depth() == {("mail", State.COMPLETED): 1} == unguarded.counted()


def test_a_step_that_is_interrupted_loses_nothing(unguarded: Database) -> None:
    unguarded.clock.advance(10 * DAY)
    rows = {today(unguarded) - DAY: 50_000, today(unguarded): 100_001}
    for day, number in rows.items():
        insert_unprepared(unguarded, day, number)
    timed, killed = unguarded.session(), unguarded.session()
    timed.execute("set statement_timeout = '5ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        timed.prepare_days()
    killed.execute("begin")
    assert killed.prepare_days()
    unguarded.execute("select pg_terminate_backend(%s, 10000)", killed.pid)
    with pytest.raises(psycopg.OperationalError):
        killed.execute("commit")
    assert where_jobs_are(unguarded) == {"jobs_finished_unprepared"}
    while unguarded.prepare_days():
        pass
    assert {
        day: unguarded.value(f"select count(*) from {name('jobs_finished', day)}") for day in rows
    } == rows
    assert unguarded.depth() == unguarded.counted()


@pytest.mark.parametrize("ahead", ["-1", "367", "2147483647", "null"])
def test_it_prepares_a_year_at_most(db: Database, ahead: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        db.execute(f"select howdah.prepare_days({ahead})")
    assert refused.value.sqlstate == "22023"
