"""The doctor finds each problem of a queue, and says what to do about it."""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from howdah import Queue, observe
from howdah.observe import Check, Level
from howdah.observe.doctor import database, release, tables
from tests.observe.support import HOUR, MINUTE, beat_worker, open_store
from tests.store.roles import roles_in
from tests.support import Database
from tests.support.databases import Databases
from tests.support.waiting import eventually

NAMES = {
    *("oldest_transaction", "replication_slots", "connections", "notify_queue", "clock_skew"),
    *(
        "server_release",
        "dead_rows",
        "autovacuum",
        "days",
        "workers",
        "held_up",
        "upkeep",
        "schema",
        "limits",
        "schedules",
    ),
}


async def examine(db: Database) -> dict[str, Check]:
    async with open_store(db) as store:
        diagnosis = await observe.examine(store)
    assert [check.level for check in diagnosis.checks] == sorted(
        (check.level for check in diagnosis.checks), reverse=True
    )
    for check in diagnosis.checks:
        assert bool(check.advice) == (check.level is not Level.FINE), check
    return {check.name: check for check in diagnosis.checks}


async def test_a_healthy_queue_is_fine_in_every_respect(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "NEWEST", {})  # any server release is fine here
    beat_worker(db, "w", "mail")
    db.enqueue("mail")
    checks = await examine(db)
    assert set(checks) == NAMES
    assert {name for name, check in checks.items() if check.level is not Level.FINE} == set()


async def test_an_old_transaction_is_reported_with_its_pid(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "OLD", 0.0)
    other = db.session()
    with other.transaction():
        other.value("select count(*) from jobs")
        check = (await examine(db))["oldest_transaction"]
        assert check.level is Level.WARNING
        assert f"pid {other.pid}" in check.sentence
        assert "pg_terminate_backend" in check.advice
        monkeypatch.setattr(database, "VERY_OLD", 0.0)
        assert (await examine(db))["oldest_transaction"].level is Level.CRITICAL
    monkeypatch.setattr(database, "OLD", 300.0)
    assert (await examine(db))["oldest_transaction"].level is not Level.WARNING


async def test_dead_rows_are_reported_with_their_table(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute("alter table howdah.jobs_live set (autovacuum_enabled = off)")
    db.enqueue_many([{"job_type": "mail"}] * 50)
    db.complete(db.claim("mail", batch=50))
    monkeypatch.setattr(tables, "MANY", 50)

    async def current_check() -> Check:
        return (await examine(db))["dead_rows"]

    async def warned() -> bool:  # statistics come with a delay
        db.execute("select 1")
        return (await current_check()).level is Level.WARNING

    await eventually(warned)
    assert "howdah.jobs_live has" in (await current_check()).sentence
    monkeypatch.setattr(tables, "VERY_MANY", 50)
    assert (await current_check()).level is Level.CRITICAL


async def test_a_missing_vacuum_is_reported(db: Database) -> None:
    db.execute("alter table howdah.jobs_live set (autovacuum_enabled = off)")
    with db.rolled_back():
        db.execute("insert into jobs_live (job_type) select 'mail' from generate_series(1, 25000)")

    async def current_check() -> Check:
        return (await examine(db))["autovacuum"]

    async def level_is(level: Level) -> bool:  # statistics come with a delay
        db.execute("select 1")
        return (await current_check()).level is level

    await eventually(lambda: level_is(Level.WARNING))
    assert "never been vacuumed" in (await current_check()).sentence
    db.execute("vacuum howdah.jobs_live")
    await eventually(lambda: level_is(Level.FINE))


async def test_missing_and_expired_day_partitions_are_reported(db: Database) -> None:
    beat_worker(db, "w", "mail")
    db.clock.advance(timedelta(days=30))
    check = (await examine(db))["days"]
    assert check.level is Level.WARNING
    assert "There is no partition for job_events of" in check.sentence
    db.enqueue("mail")
    db.complete(db.claim("mail"))
    check = (await examine(db))["days"]
    assert "Rows wait in an _unprepared partition" in check.sentence
    db.prepare_days()
    check = (await examine(db))["days"]
    assert "partitions are older than their retention" in check.sentence
    db.prune()
    assert (await examine(db))["days"].level is Level.FINE


async def test_clock_skew_is_reported(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    real_time = time.time
    for by, level, word in (
        (5.0, Level.WARNING, "behind this machine's"),
        (-5.0, Level.WARNING, "ahead of this machine's"),
        (60.0, Level.CRITICAL, "behind this machine's"),
    ):
        monkeypatch.setattr(database.time, "time", lambda by=by: real_time() + by)
        check = (await examine(db))["clock_skew"]
        assert check.level is level
        assert check.sentence.endswith(f"{word}.")
        assert check.value == pytest.approx(abs(by), abs=0.9)


@pytest.mark.parametrize("info", ['{"held_up": 7}', '{"held_up": {"types": 1}}', "[]", "{}"])
async def test_malformed_info_of_a_worker_is_ignored(db: Database, info: str) -> None:
    db.execute("select howdah.beat('odd', p_info => %s::jsonb)", info)
    assert (await examine(db))["held_up"].level is Level.FINE


async def test_the_type_that_holds_the_gil_of_a_live_worker_is_named(db: Database) -> None:
    held_up = '{"held_up": {"seconds": 9.5, "types": ["hog"], "now": true}}'
    db.execute("select howdah.beat('w', p_info => %s::jsonb)", held_up)
    check = (await examine(db))["held_up"]
    assert (check.level, check.value) == (Level.WARNING, 9.5)
    assert check.sentence.startswith("hog held the GIL for 9.5 s in w:")
    db.clock.advance(timedelta(minutes=1))
    assert (await examine(db))["held_up"].level is Level.FINE, (
        "a dead worker is reported by another check"
    )


async def test_silent_workers_with_jobs_are_reported(db: Database) -> None:
    db.beat("gone")
    db.enqueue("mail")
    db.claim("mail", worker="gone")
    db.clock.advance(MINUTE)
    check = (await examine(db))["workers"]
    assert (check.level, "gone" in check.sentence) == (Level.CRITICAL, True)
    beat_worker(db, "w", "mail")
    assert (await examine(db))["workers"].level is Level.WARNING
    db.recover_stale_jobs()
    assert (await examine(db))["workers"].level is Level.FINE


async def test_jobs_without_a_worker_for_their_type_are_reported(db: Database) -> None:
    db.enqueue("mail")
    assert (await examine(db))["workers"].level is Level.CRITICAL
    db.execute("select howdah.pause('mail')")
    assert (await examine(db))["workers"].level is Level.FINE


async def test_missing_upkeep_is_reported(db: Database) -> None:
    db.enqueue("mail", delay=HOUR)
    assert (await examine(db))["upkeep"].level is Level.FINE
    db.clock.advance(2 * HOUR)
    check = (await examine(db))["upkeep"]
    assert check.level is Level.WARNING
    assert "due for 59m" in check.sentence or "due for 1h" in check.sentence


async def test_functions_of_another_version_are_reported(db: Database) -> None:
    db.execute("update installed set fingerprint = 'other'")
    assert (await examine(db))["schema"].level is Level.WARNING
    db.execute("update installed set schema_number = 99")
    assert "newer than this code's" in (await examine(db))["schema"].sentence


async def test_checks_without_privilege_are_unknown_and_the_others_work(
    databases: Databases,
) -> None:
    with roles_in(databases) as roles:
        name: str = roles.observer.value("select session_user::text")
        roles.owner.execute(f'alter role "{name.replace(chr(34), chr(34) * 2)}" login')
        async with Queue(roles.owner.dsn) as queue:
            store = queue.store
            connect = store.connect

            async def as_observer() -> object:
                connection = await connect()
                quoted = name.replace('"', '""')
                await connection.execute(f'set session authorization "{quoted}"')
                return connection

            store.connect = as_observer  # type: ignore[method-assign,assignment]
            checks = {check.name: check for check in (await observe.examine(store)).checks}
            assert set(checks) >= NAMES
            assert {name for name, check in checks.items() if check.level > Level.UNKNOWN} == set()
            assert checks["oldest_transaction"].level in (Level.UNKNOWN, Level.FINE)
            assert (await observe.overview(store)).late == []
            assert await observe.workers(store) == []
            assert (await observe.failures(store)).groups == []


# ── checks of the whole server ──


@pytest.fixture
def slot(db: Database) -> Generator[str]:
    """A replication slot without a reader. It keeps the server's WAL, so it must be dropped."""
    name = "howdah_doctor_test"
    if db.value("select current_setting('wal_level')") == "minimal":
        pytest.skip("this server was started without WAL for replication")
    db.execute("select pg_create_physical_replication_slot(%s, true)", name)
    try:
        yield name
    finally:
        db.execute("select pg_drop_replication_slot(%s)", name)


async def test_an_unused_replication_slot_is_reported(
    db: Database, slot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = (await examine(db))["replication_slots"]
    assert check.level is Level.FINE
    assert f"{slot} is not active" in check.sentence
    monkeypatch.setattr(database, "MUCH_WAL", 1.0)
    db.enqueue("mail")
    check = (await examine(db))["replication_slots"]
    assert check.level is Level.WARNING
    assert "pg_drop_replication_slot" in check.advice


async def test_connections_near_the_limit_are_reported(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the test lowers the limit instead of opening connections: other tests need them
    used = (await examine(db))["connections"].value
    assert used is not None
    monkeypatch.setattr(database, "MANY_USED", used / 2)
    check = (await examine(db))["connections"]
    assert check.level is Level.WARNING
    assert "PgBouncer" in check.advice
    monkeypatch.setattr(database, "NEARLY_ALL_USED", used / 4)
    assert (await examine(db))["connections"].level is Level.CRITICAL


async def test_a_check_that_takes_too_long_is_unknown(db: Database) -> None:
    async with open_store(db) as store:
        with db.transaction():
            db.execute("lock table howdah.workers in access exclusive mode")
            diagnosis = await observe.examine(store, within=timedelta(milliseconds=200))
            levels = {check.name: check.level for check in diagnosis.checks}
            assert levels["workers"] is Level.UNKNOWN
            assert levels["schema"] is Level.FINE


def test_every_check_is_explained_in_the_guide() -> None:
    guide = Path(__file__).resolve().parents[2] / "docs" / "guides" / "observe.md"
    text = guide.read_text()
    for name in {*NAMES, "standby_feedback", "freeze_age"}:
        assert f"`{name}`" in text, name


async def test_a_limit_whose_slots_are_held_by_nobody_at_work_is_reported(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1)")
    for job_type in ("mail", "unknown"):
        db.execute("select howdah.set_type_limit(%s, null, p_limit => 'api')", job_type)
    beat_worker(db, "w", "mail")
    db.enqueue("unknown")
    db.admit_all()
    db.enqueue("mail")
    assert (await examine(db))["limits"].level is Level.FINE, "not for long yet"
    db.clock.advance(2 * MINUTE)
    check = (await examine(db))["limits"]
    assert check.level is Level.WARNING
    assert check.sentence.startswith(
        "1 job holds slots of the limit api and none is at work, the first for 2m"
    )
    assert check.sentence.endswith("; 1 job waits.")
    assert "pause the types" in check.advice
    db.execute("select howdah.set_limit('api', 2)")
    db.admit_all()
    db.claim("mail")
    db.enqueue("mail")
    db.clock.advance(2 * MINUTE)
    assert (await examine(db))["limits"].level is Level.FINE, "a job is at work"


async def test_jobs_that_nobody_admits_are_reported(db: Database) -> None:
    db.execute(
        "select howdah.set_limit('api', 3), howdah.set_limit('slow', p_rate => 1, p_per => '1 day')"
    )
    db.execute("select howdah.set_type_limit('mail', null, p_limit => 'api')")
    db.execute("select howdah.set_type_limit('report', null, p_limit => 'slow')")
    for _ in range(2):
        db.enqueue("report")
    db.admit()
    db.complete(db.claim("report"))
    db.admit()  # its rate is used up: that is no problem
    db.enqueue("mail")
    db.clock.advance(2 * MINUTE)
    check = (await examine(db))["limits"]
    assert check.level is Level.WARNING
    assert check.sentence.startswith("1 job waits for the limit api, the first for 2m")
    assert "no job holds a slot" in check.sentence
    assert check.value == 1
    db.execute("select howdah.pause('mail')")
    assert (await examine(db))["limits"].level is Level.FINE


async def test_schedules_that_do_not_fire_are_reported(db: Database) -> None:
    beat_worker(db, "w", "mail")
    db.execute("select howdah.set_schedule('nightly', 'mail', p_cron => '0 3 * * *')")
    db.execute("update howdah.schedules set next_firing = howdah.clock()")
    assert (await examine(db))["schedules"].level is Level.FINE
    db.clock.advance(2 * MINUTE)
    late = (await examine(db))["schedules"]
    assert late.level is Level.WARNING
    assert late.sentence == "The schedule nightly should have fired more than a minute ago."
    db.execute("update howdah.schedules set next_firing = 'infinity', problem = 'bad hour'")
    stopped = (await examine(db))["schedules"]
    assert stopped.sentence == "The schedule nightly cannot fire: bad hour."
    db.execute("update howdah.schedules set orphaned_at = now()")
    orphaned = (await examine(db))["schedules"]
    assert (orphaned.level, orphaned.value) == (Level.WARNING, 1)
    assert "is not in the code any more" in orphaned.sentence
    db.execute("select howdah.pause_schedule('nightly')")
    db.execute("update howdah.schedules set orphaned_at = null")
    assert (await examine(db))["schedules"].level is Level.FINE, "a paused one is as it should be"
