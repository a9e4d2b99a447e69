"""The doctor finds each thing that is wrong with a queue, and says what to do about it."""

from __future__ import annotations

from collections.abc import Generator
from datetime import timedelta
from pathlib import Path

import pytest

from howdah import Queue, observe
from howdah.observe import Check, Level
from howdah.observe.doctor import database, release, tables
from tests.observe.support import HOUR, MINUTE, asking, listens
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
    ),
}


async def examined(db: Database) -> dict[str, Check]:
    async with asking(db) as store:
        found = await observe.examine(store)
    assert [check.level for check in found.checks] == sorted(
        (check.level for check in found.checks), reverse=True
    )
    for check in found.checks:
        assert bool(check.advice) == (check.level is not Level.FINE), check
    return {check.name: check for check in found.checks}


async def test_a_healthy_queue_is_fine_in_every_respect(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "NEWEST", {})  # whichever server it is tested on
    listens(db, "w", "mail")
    db.enqueue("mail")
    found = await examined(db)
    assert set(found) == NAMES
    assert {name for name, check in found.items() if check.level is not Level.FINE} == set()


async def test_an_open_transaction_is_told_with_who_has_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "OLD", 0.0)
    other = db.session()
    with other.transaction():
        other.value("select count(*) from jobs")
        check = (await examined(db))["oldest_transaction"]
        assert check.level is Level.WARNING
        assert f"pid {other.pid}" in check.sentence
        assert "pg_terminate_backend" in check.advice
        monkeypatch.setattr(database, "VERY_OLD", 0.0)
        assert (await examined(db))["oldest_transaction"].level is Level.CRITICAL
    monkeypatch.setattr(database, "OLD", 300.0)
    assert (await examined(db))["oldest_transaction"].level is not Level.WARNING


async def test_dead_rows_are_told_with_their_table(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute("alter table howdah.jobs_live set (autovacuum_enabled = off)")
    db.enqueue_many([{"job_type": "mail"}] * 50)
    db.complete(db.claim("mail", batch=50))
    monkeypatch.setattr(tables, "MANY", 50)

    async def told() -> Check:
        return (await examined(db))["dead_rows"]

    async def warned() -> bool:  # statistics come with a delay
        db.execute("select 1")
        return (await told()).level is Level.WARNING

    await eventually(warned)
    assert "howdah.jobs_live has" in (await told()).sentence
    monkeypatch.setattr(tables, "VERY_MANY", 50)
    assert (await told()).level is Level.CRITICAL


async def test_a_vacuum_that_does_not_come_is_told(db: Database) -> None:
    db.execute("alter table howdah.jobs_live set (autovacuum_enabled = off)")
    with db.rolled_back():
        db.execute("insert into jobs_live (job_type) select 'mail' from generate_series(1, 25000)")

    async def told() -> Check:
        return (await examined(db))["autovacuum"]

    async def level_is(level: Level) -> bool:  # statistics come with a delay
        db.execute("select 1")
        return (await told()).level is level

    await eventually(lambda: level_is(Level.WARNING))
    assert "never been vacuumed" in (await told()).sentence
    db.execute("vacuum howdah.jobs_live")
    await eventually(lambda: level_is(Level.FINE))


async def test_missing_days_and_strays_are_told(db: Database) -> None:
    listens(db, "w", "mail")
    db.clock.advance(timedelta(days=30))
    check = (await examined(db))["days"]
    assert check.level is Level.WARNING
    assert "There is no partition for job_events of" in check.sentence
    db.enqueue("mail")
    db.complete(db.claim("mail"))
    check = (await examined(db))["days"]
    assert "Rows wait in an _unprepared partition" in check.sentence
    db.prepare_days()
    check = (await examined(db))["days"]
    assert "days are kept for longer" in check.sentence
    db.prune()
    assert (await examined(db))["days"].level is Level.FINE


async def test_a_clock_that_is_off_is_told(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    real = time.time
    for by, level, word in (
        (5.0, Level.WARNING, "behind ours"),
        (-5.0, Level.WARNING, "ahead of ours"),
        (60.0, Level.CRITICAL, "behind ours"),
    ):
        monkeypatch.setattr(database.time, "time", lambda by=by: real() + by)
        check = (await examined(db))["clock_skew"]
        assert check.level is level
        assert check.sentence.endswith(f"{word}.")
        assert check.value == pytest.approx(abs(by), abs=0.9)


@pytest.mark.parametrize("info", ['{"held_up": 7}', '{"held_up": {"types": 1}}', "[]", "{}"])
async def test_what_a_worker_says_of_itself_may_make_no_sense(db: Database, info: str) -> None:
    db.execute("select howdah.beat('odd', p_info => %s::jsonb)", info)
    assert (await examined(db))["held_up"].level is Level.FINE


async def test_who_holds_the_gil_of_a_live_worker_is_named(db: Database) -> None:
    held_up = '{"held_up": {"seconds": 9.5, "types": ["hog"], "now": true}}'
    db.execute("select howdah.beat('w', p_info => %s::jsonb)", held_up)
    check = (await examined(db))["held_up"]
    assert (check.level, check.value) == (Level.WARNING, 9.5)
    assert check.sentence.startswith("hog held the GIL for 9.5 s in w:")
    db.clock.advance(timedelta(minutes=1))
    assert (await examined(db))["held_up"].level is Level.FINE, "it is dead, which another tells"


async def test_silent_workers_with_jobs_are_told(db: Database) -> None:
    db.beat("gone")
    db.enqueue("mail")
    db.claim("mail", worker="gone")
    db.clock.advance(MINUTE)
    check = (await examined(db))["workers"]
    assert (check.level, "gone" in check.sentence) == (Level.CRITICAL, True)
    listens(db, "w", "mail")
    assert (await examined(db))["workers"].level is Level.WARNING
    db.recover_stale_jobs()
    assert (await examined(db))["workers"].level is Level.FINE


async def test_jobs_that_nobody_takes_are_told(db: Database) -> None:
    db.enqueue("mail")
    assert (await examined(db))["workers"].level is Level.CRITICAL
    db.execute("select howdah.pause('mail')")
    assert (await examined(db))["workers"].level is Level.FINE


async def test_upkeep_that_nobody_does_is_told(db: Database) -> None:
    db.enqueue("mail", delay=HOUR)
    assert (await examined(db))["upkeep"].level is Level.FINE
    db.clock.advance(2 * HOUR)
    check = (await examined(db))["upkeep"]
    assert check.level is Level.WARNING
    assert "due for 59m" in check.sentence or "due for 1h" in check.sentence


async def test_functions_of_another_version_are_told(db: Database) -> None:
    db.execute("update installed set fingerprint = 'other'")
    assert (await examined(db))["schema"].level is Level.WARNING
    db.execute("update installed set schema_number = 99")
    assert "newer than this code's" in (await examined(db))["schema"].sentence


async def test_what_a_role_may_not_see_is_unknown_and_the_rest_is_told(
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
            found = {check.name: check for check in (await observe.examine(store)).checks}
            assert set(found) >= NAMES
            assert {name for name, one in found.items() if one.level > Level.UNKNOWN} == set()
            assert found["oldest_transaction"].level in (Level.UNKNOWN, Level.FINE)
            assert (await observe.overview(store)).late == []
            assert await observe.crew(store) == []
            assert (await observe.failures(store)).groups == []


# ── a server of its own, for what is set or broken server-wide ──


@pytest.fixture
def slot(db: Database) -> Generator[str]:
    """A replication slot that nobody reads; it pins the server's WAL, so it must go."""
    name = "howdah_doctor_test"
    if db.value("select current_setting('wal_level')") == "minimal":
        pytest.skip("this server was started without WAL for replication")
    db.execute("select pg_create_physical_replication_slot(%s, true)", name)
    try:
        yield name
    finally:
        db.execute("select pg_drop_replication_slot(%s)", name)


async def test_a_slot_that_nobody_reads_is_told(
    db: Database, slot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = (await examined(db))["replication_slots"]
    assert check.level is Level.FINE
    assert f"{slot} is not active" in check.sentence
    monkeypatch.setattr(database, "BEHIND", 1.0)
    db.enqueue("mail")
    check = (await examined(db))["replication_slots"]
    assert check.level is Level.WARNING
    assert "pg_drop_replication_slot" in check.advice


async def test_connections_near_the_limit_are_told(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the limit is moved, and not the crowd: other tests need connections, too
    used = (await examined(db))["connections"].value
    assert used is not None
    monkeypatch.setattr(database, "CROWDED", used / 2)
    check = (await examined(db))["connections"]
    assert check.level is Level.WARNING
    assert "PgBouncer" in check.advice
    monkeypatch.setattr(database, "FULL", used / 4)
    assert (await examined(db))["connections"].level is Level.CRITICAL


async def test_a_check_that_takes_too_long_is_unknown(db: Database) -> None:
    async with asking(db) as store:
        with db.transaction():
            db.execute("lock table howdah.workers in access exclusive mode")
            found = await observe.examine(store, within=timedelta(milliseconds=200))
            levels = {one.name: one.level for one in found.checks}
            assert levels["workers"] is Level.UNKNOWN
            assert levels["schema"] is Level.FINE


def test_every_check_is_explained_in_the_guide() -> None:
    guide = Path(__file__).resolve().parents[2] / "docs" / "guides" / "observing.md"
    text = guide.read_text()
    for name in {*NAMES, "standby_feedback", "freeze_age"}:
        assert f"`{name}`" in text, name
