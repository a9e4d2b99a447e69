"""The engine fires a schedule once for each of its times, whoever asks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from howdah.job import scheduled_for
from tests.support import Database

pytestmark = pytest.mark.engine

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def due(db: Any) -> list[dict[str, Any]]:
    return db.rows("select * from howdah.due_schedules()")


def firing(row: dict[str, Any], times: list[datetime], next: Any) -> dict[str, Any]:
    return {
        "name": row["name"],
        "version": row["version"],
        "expected": row["next_firing"],
        "times": times,
        "next": next,
    }


def fire(db: Any, *firings: dict[str, Any]) -> list[dict[str, Any]]:
    text = json.dumps(firings, default=lambda value: value.isoformat())
    return db.rows("select * from howdah.fire_schedules(%s::jsonb)", text)


def set_up(db: Database, name: str = "nightly", **values: str) -> datetime:
    """Make a schedule that fires every hour, and is due now; returns the time of the firing."""
    given = {"p_every": "interval '1 hour'", **values}
    options = "".join(f", {name} => {value}" for name, value in given.items())
    db.execute(f"select howdah.set_schedule('{name}', 'mail'{options})")
    (row,) = [each for each in due(db) if each["name"] == name]
    first = row["counts_from"] + HOUR
    fire(db, firing(row, [], first))
    db.clock.advance(HOUR)
    return first


def jobs(db: Database) -> list[dict[str, Any]]:
    return db.rows("select *, howdah.scheduled_for(id) as at from howdah.jobs order by id")


def test_a_firing_enqueues_one_job_and_moves_the_next(db: Database) -> None:
    first = set_up(db, p_data="""'{"to": 1}'""")
    (row,) = due(db)
    assert fire(db, firing(row, [first], first + HOUR)) == [
        {"name": "nightly", "jobs": 1, "skipped": False, "problem": None}
    ]
    (job,) = jobs(db)
    assert (job["job_type"], job["data"], job["at"]) == ("mail", {"to": 1}, first)
    assert scheduled_for(job["id"]) == first
    assert due(db) == []
    (schedule,) = db.rows("select * from howdah.schedules")
    assert schedule["next_firing"] == first + HOUR
    assert (schedule["last_firing"], schedule["last_job_id"]) == (first, job["id"])


def test_a_second_worker_with_the_same_firing_enqueues_nothing(db: Database) -> None:
    first = set_up(db)
    (row,) = due(db)
    assert len(fire(db, firing(row, [first], first + HOUR))) == 1
    assert fire(db, firing(row, [first], first + HOUR)) == []
    assert len(jobs(db)) == 1


def test_a_worker_that_meets_another_one_does_not_wait(db: Database) -> None:
    first = set_up(db)
    (row,) = due(db)
    other = db.session()
    with other.transaction():
        assert len(fire(other, firing(row, [first], first + HOUR))) == 1
        assert fire(db, firing(row, [first], first + HOUR)) == []
    assert fire(db, firing(row, [first], first + HOUR)) == []
    assert len(jobs(db)) == 1


def test_a_worker_killed_before_the_commit_leaves_the_firing(db: Database) -> None:
    first = set_up(db)
    (row,) = due(db)
    other = db.session()
    other.execute("begin")
    assert len(fire(other, firing(row, [first], first + HOUR))) == 1
    assert db.value("select pg_terminate_backend(%s, 5000)", other.pid)
    assert [each["next_firing"] for each in due(db)] == [first]
    assert jobs(db) == []
    assert len(fire(db, firing(row, [first], first + HOUR))) == 1
    assert len(jobs(db)) == 1


def test_a_schedule_that_was_changed_meanwhile_is_not_fired(db: Database) -> None:
    first = set_up(db)
    (row,) = due(db)
    db.execute(
        "select howdah.set_schedule('nightly', 'mail', p_every => '1 hour', p_missed => 'skip')"
    )
    assert fire(db, firing(row, [first], first + HOUR)) == []
    db.execute("select howdah.pause_schedule('nightly')")
    assert due(db) == []


def test_a_change_that_keeps_the_times_keeps_the_next_firing(db: Database) -> None:
    first = set_up(db)
    db.execute(
        """select howdah.set_schedule('nightly', 'other', '{"a": 1}', p_every => '1 hour')"""
    )
    assert db.value("select next_firing from howdah.schedules") == first
    db.execute("select howdah.set_schedule('nightly', 'other', p_every => '2 hours')")
    assert db.value("select next_firing from howdah.schedules") is None


@pytest.mark.parametrize(
    ("times", "next", "message"),
    [
        ([0], 0, "the next firing of the schedule nightly cannot be"),
        ([0], -60, "cannot be"),
        ([0], 10**6, "cannot be"),
        ([0], None, "cannot be null"),
        ([0], "infinity", "cannot be infinity"),
        ([], 0, "cannot be"),
        ([-1], 60, "cannot fire for"),
        ([1], 60, "cannot fire for"),
        ([0, 0], 60, "cannot fire for"),
        ([0] * 101, 60, "101 times to fire; at most 100"),
    ],
)
def test_absurd_times_are_refused(db: Database, times: list[int], next: Any, message: str) -> None:
    first = set_up(db)
    (row,) = due(db)
    asked = firing(
        row,
        [first + n * MINUTE for n in times],
        first + next * MINUTE if isinstance(next, int) else next,
    )
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
        fire(db, asked)
    assert jobs(db) == []
    assert [each["next_firing"] for each in due(db)] == [first]


def test_a_cron_schedule_may_have_no_further_firing(db: Database) -> None:
    db.execute("select howdah.set_schedule('once', 'mail', p_cron => '0 0 29 2 *')")
    (row,) = due(db)
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="cannot be"):
        fire(db, firing(row, [], row["clock"] + timedelta(days=40_000)))
    assert len(fire(db, firing(row, [], "infinity"))) == 1
    assert due(db) == []
    assert db.value("select howdah.next_due_in()") is None


def test_a_clock_that_jumps_back_fires_nothing_twice(db: Database) -> None:
    first = set_up(db)
    (row,) = due(db)
    fire(db, firing(row, [first], first + HOUR))
    db.clock.advance(-HOUR)
    assert due(db) == []
    db.clock.advance(HOUR)
    assert due(db) == []
    db.clock.advance(HOUR)
    assert [each["next_firing"] for each in due(db)] == [first + HOUR]


def test_overlap_skip_enqueues_nothing_while_the_job_before_has_not_ended(db: Database) -> None:
    first = set_up(db, p_overlap="'skip'")
    (row,) = due(db)
    fire(db, firing(row, [first], first + HOUR))
    db.clock.advance(HOUR)
    (row,) = due(db)
    (fired,) = fire(db, firing(row, [first + HOUR], first + 2 * HOUR))
    assert fired["skipped"]
    assert len(jobs(db)) == 1
    assert db.value("select last_skipped from howdah.schedules") == first + HOUR
    db.complete(db.claim("mail"))
    db.clock.advance(HOUR)
    (row,) = due(db)
    (fired,) = fire(db, firing(row, [first + 2 * HOUR], first + 3 * HOUR))
    assert fired["jobs"] == 1
    assert len(jobs(db)) == 2


def test_overlap_skip_makes_one_job_of_many_firings(db: Database) -> None:
    first = set_up(db, p_overlap="'skip'", p_missed="'all'")
    db.clock.advance(2 * HOUR)
    (row,) = due(db)
    times = [first, first + HOUR, first + 2 * HOUR]
    (fired,) = fire(db, firing(row, times, first + 3 * HOUR))
    assert fired["jobs"] == 1
    assert [job["at"] for job in jobs(db)] == times[2:]


def test_overlap_allow_enqueues_beside_the_job_before(db: Database) -> None:
    first = set_up(db, p_missed="'all'")
    db.clock.advance(2 * HOUR)
    (row,) = due(db)
    times = [first, first + HOUR, first + 2 * HOUR]
    (fired,) = fire(db, firing(row, times, first + 3 * HOUR))
    assert fired["jobs"] == 3
    assert [job["at"] for job in jobs(db)] == times


def test_a_firing_takes_the_ordinary_way_of_an_enqueue(db: Database) -> None:
    db.execute(
        """select howdah.register_job_types('w', '[{"name": "mail", "priority": 7,
        "max_attempts": 2, "expires": "1 hour"}]')"""
    )
    first = set_up(db, p_options="""'{"key": "reports", "unique_key": "one"}'""")
    (row,) = due(db)
    fire(db, firing(row, [first], first + HOUR))
    (job,) = jobs(db)
    assert (job["priority"], job["max_attempts"], job["key"]) == (7, 2, "reports")
    assert (job["unique_key"], job["admission"]) == ("one", "slot")
    assert job["expires_at"] is not None
    db.clock.advance(timedelta(minutes=30))
    db.execute("update howdah.schedules set next_firing = howdah.clock()")
    (row,) = due(db)
    fire(db, firing(row, [row["next_firing"]], row["next_firing"] + HOUR))
    assert len(jobs(db)) == 1, "the unique key belongs to the first job"


def test_one_schedule_whose_job_is_refused_does_not_stop_others(db: Database) -> None:
    first, _ = set_up(db, "good"), set_up(db, "bad")
    long = '{"a": "' + "x" * 2000 + '"}'
    db.execute("update howdah.schedules set data = %s where name = 'bad'", long)
    db.execute("update howdah.options set value = '1000' where name = 'max_payload_bytes'")
    rows = due(db)
    fired = fire(db, *(firing(row, [row["next_firing"]], row["clock"] + HOUR) for row in rows))
    assert "the payload has" in next(each["problem"] for each in fired if each["problem"])
    assert [job["at"] for job in jobs(db)] == [first]
    assert db.value("select problem from howdah.schedules where name = 'good'") is None
    assert "the payload has" in db.value("select problem from howdah.schedules where name = 'bad'")
    assert due(db) == []


def test_a_schedule_with_a_problem_waits_until_it_is_changed(db: Database) -> None:
    db.execute("select howdah.set_schedule('bad', 'mail', p_cron => 'nonsense')")
    (row,) = due(db)
    fire(db, {**firing(row, [], None), "problem": "wrong number of fields"})
    assert due(db) == []
    assert db.value("select problem from howdah.schedules") == "wrong number of fields"
    db.execute("select howdah.resume_schedule('bad')")
    assert len(due(db)) == 1


def test_resume_counts_from_now(db: Database) -> None:
    set_up(db)
    assert db.value("select howdah.pause_schedule('nightly')")
    assert not db.value("select howdah.pause_schedule('nightly')")
    db.clock.advance(timedelta(days=3))
    assert due(db) == []
    assert db.value("select howdah.resume_schedule('nightly')")
    (row,) = due(db)
    assert row["next_firing"] is None
    assert row["clock"] - row["counts_from"] < MINUTE
    assert not db.value("select howdah.resume_schedule('nightly')")


def test_run_now_enqueues_at_once_and_keeps_the_next_firing(db: Database) -> None:
    first = set_up(db, p_overlap="'skip'")
    db.execute("select howdah.pause_schedule('nightly')")
    id = db.value("select howdah.run_schedule_now('nightly')")
    (job,) = jobs(db)
    assert job["id"] == id
    (schedule,) = db.rows("select * from howdah.schedules")
    assert (schedule["last_job_id"], schedule["next_firing"]) == (id, first)
    assert schedule["last_firing"] == job["at"]


def test_remove_leaves_the_jobs(db: Database) -> None:
    set_up(db)
    db.execute("select howdah.run_schedule_now('nightly')")
    assert db.value("select howdah.remove_schedule('nightly')")
    assert not db.value("select howdah.remove_schedule('nightly')")
    assert len(jobs(db)) == 1


def test_ids_of_one_millisecond_differ_and_hold_the_time(db: Database) -> None:
    at = datetime(2026, 3, 29, 1, 0, 0, 123000, UTC)
    ids = db.column("select howdah.firing_id(%s) from generate_series(1, 5000)", at)
    assert len(set(ids)) == 5000
    assert {scheduled_for(id) for id in ids} == {at}
    assert db.value("select howdah.scheduled_for(%s)", ids[0]) == at
    late = datetime(9998, 12, 31, tzinfo=UTC)
    assert scheduled_for(db.value("select howdah.firing_id(%s)", late)) == late
    assert scheduled_for(db.value("select howdah.new_id()")) is None
    assert db.value("select howdah.scheduled_for(howdah.new_id())") is None


BAD = {
    "set_schedule('', 'mail', p_every => '1 hour')": "1 to 200 characters",
    "set_schedule(null, 'mail', p_every => '1 hour')": "not null",
    "set_schedule(E'a\\nb', 'mail', p_every => '1 hour')": "control character",
    "set_schedule('a', null, p_every => '1 hour')": "needs a job type",
    "set_schedule('a', 'mail')": "needs p_cron or p_every",
    "set_schedule('a', 'mail', p_cron => '0 3 * * *', p_every => '1 hour')": "and not both",
    "set_schedule('a', 'mail', p_cron => '')": "1 to 200 characters",
    "set_schedule('a', 'mail', p_cron => repeat('1,', 200))": "this one has 400",
    "set_schedule('a', 'mail', p_every => '1 month')": "no months and years",
    "set_schedule('a', 'mail', p_every => '0')": "between 1 second and 366 days",
    "set_schedule('a', 'mail', p_every => '-1 hour')": "between 1 second and 366 days",
    "set_schedule('a', 'mail', p_every => '367 days')": "between 1 second and 366 days",
    "set_schedule('a', 'mail', p_every => '1.0005 s')": "whole milliseconds",
    "set_schedule('a', 'mail', p_cron => '0 3 * * *', p_tz => 'Europe/Berln')": "no time zone",
    "set_schedule('a', 'mail', p_cron => '0 3 * * *', p_tz => null)": "no time zone null",
    "set_schedule('a', 'mail', p_every => '1 hour', p_missed => 'some')": "skip, last or all",
    "set_schedule('a', 'mail', p_every => '1 hour', p_missed => null)": "not null",
    "set_schedule('a', 'mail', p_every => '1 hour', p_overlap => 'all')": "allow or skip",
    "set_schedule('a', 'mail', '[]', p_every => '1 hour')": "must be a JSON object",
    "set_schedule('a', 'mail', p_every => '1 hour', p_options => '[]')": "must be a JSON object",
    """set_schedule('a', 'mail', p_every => '1 hour', p_options => '{"a": 1}')""": "has no 'a'",
    """set_schedule('a', 'mail', p_every => '1 hour',
        p_options => '{"max_attempts": 0}')""": "at least 1",
    """set_schedule('a', 'mail', p_every => '1 hour',
        p_options => '{"on_conflict": "error", "unique_key": "k"}')""": "nobody hears",
    """set_schedule('a', 'mail', p_every => '1 hour',
        p_options => '{"unique_key": "k", "unique_until": "soon"}')""": "until",
    """set_schedule('a', 'mail', p_every => '1 hour',
        p_options => '{"expires_at": "2030-01-01"}')""": "one instant for all its jobs",
    """set_schedule('a', 'mail', p_every => '1 hour', p_options => '{"key": ""}')""": "key must",
    "pause_schedule('nightyl')": "there is no schedule 'nightyl'",
    "resume_schedule('nightyl')": "there is no schedule 'nightyl'",
    "run_schedule_now('nightyl')": "there is no schedule 'nightyl'",
    "register_schedules('w', '{}', '{}')": "must be a JSON array",
    "fire_schedules('{}')": "must be a JSON array",
}


@pytest.mark.parametrize("call", BAD)
def test_bad_values_are_refused_and_change_nothing(db: Database, call: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=BAD[call]):
        db.rows(f"select howdah.{call}")
    assert db.value("select count(*) from howdah.schedules") == 0


def test_a_value_of_another_type_is_refused(db: Database) -> None:
    with pytest.raises(psycopg.DataError):
        db.execute(
            """select howdah.set_schedule('a', 'mail', p_every => '1 hour',
            p_options => '{"priority": "high"}')"""
        )
