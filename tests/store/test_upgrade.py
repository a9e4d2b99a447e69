"""Upgrade migrates the tables and their jobs, all or nothing.

Migrated tables equal those of a new database. A worker of the release before continues on the new
schema, beside new workers. The summary of the tests says whether an earlier release was tested: see
releases.py.
"""

from __future__ import annotations

import shutil
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TypeAlias

import asyncpg
import pytest

from howdah import Emitted, Queue, State
from howdah.errors import SchemaNewer, SchemaOlder
from howdah.store import engine_files, install_script
from howdah.store.install import check, install
from tests.store import releases
from tests.support.catalog import catalog
from tests.support.databases import Databases
from tests.support.processes import ROOT
from tests.support.waiting import eventually

pytestmark = pytest.mark.engine

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

NEXT = engine_files.SCHEMA_NUMBER + 1
ADD_NOTE = "alter table howdah.jobs add column note text not null default 'none'"
ADD_INDEX = "create index jobs_note on howdah.jobs_live (note)"


@pytest.fixture
async def ready(dsn: str) -> AsyncGenerator[Connection]:
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


@pytest.fixture
def next_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that is two migrations ahead."""
    monkeypatch.setattr(engine_files, "SCHEMA_NUMBER", NEXT + 1)
    monkeypatch.setattr(engine_files, "migrations", lambda: {NEXT + 1: ADD_INDEX, NEXT: ADD_NOTE})


async def run_one_job(connection: Connection) -> None:
    job = await connection.fetchval("select howdah.enqueue('mail')")
    (claim,) = await connection.fetch("select * from howdah.claim_job_batch('w', '{mail}', 1)")
    assert claim["id"] == job
    moved = await connection.fetchval("select howdah.complete('w', array[$1::uuid], '{1}')", job)
    assert moved == job


@pytest.mark.usefixtures("next_release")
async def test_the_next_release_requires_an_install_which_migrates(
    ready: Connection, dsn: str
) -> None:
    await run_one_job(ready)
    await ready.execute("select howdah.enqueue('waiting')")
    with pytest.raises(SchemaOlder, match=f"has number {NEXT - 1}, this code needs {NEXT + 1}"):
        await check(ready)
    assert await install(ready) is True
    await check(ready)
    assert await install(ready) is False
    rows = await ready.fetch("select job_type, status, note from howdah.jobs order by job_type")
    assert [tuple(row) for row in rows] == [
        ("mail", "completed", "none"),
        ("waiting", "pending", "none"),
    ]
    await run_one_job(ready)
    async with Queue(dsn) as queue:
        (job,) = await queue.claim(["waiting"], worker_id="first")
        assert job.attempts == 1


@pytest.mark.usefixtures("next_release")
async def test_only_the_missing_migrations_run(ready: Connection) -> None:
    await ready.execute(ADD_NOTE)
    await ready.execute(f"update howdah.installed set schema_number = {NEXT}")
    assert await install(ready) is True  # ADD_NOTE a second time would have failed
    assert await ready.fetchval("select to_regclass('howdah.jobs_note') is not null")


async def test_a_migration_that_fails_changes_nothing(
    ready: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_files, "SCHEMA_NUMBER", NEXT + 1)
    monkeypatch.setattr(
        engine_files, "migrations", lambda: {NEXT: ADD_NOTE, NEXT + 1: "select 1 / 0"}
    )
    with pytest.raises(asyncpg.DivisionByZeroError):
        await install(ready)
    monkeypatch.undo()
    await check(ready)
    assert await install(ready) is False
    await run_one_job(ready)


async def test_the_last_release_continues_if_the_new_schema_is_compatible(
    ready: Connection, dsn: str
) -> None:
    with pytest.MonkeyPatch.context() as ahead:
        ahead.setattr(engine_files, "SCHEMA_NUMBER", NEXT)
        ahead.setattr(engine_files, "migrations", lambda: {NEXT: ADD_NOTE})
        await install(ready)
    async with Queue(dsn) as queue:
        assert await queue.claim(["mail"], worker_id="first") == []
    with pytest.MonkeyPatch.context() as ahead:
        ahead.setattr(engine_files, "SCHEMA_NUMBER", NEXT + 1)
        ahead.setattr(engine_files, "COMPATIBLE_FROM", NEXT)
        ahead.setattr(engine_files, "migrations", lambda: {NEXT + 1: ADD_INDEX})
        await install(ready)
    with pytest.raises(SchemaNewer):
        await check(ready)


async def test_the_script_from_a_number_migrates_only_from_that_number(
    ready: Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await ready.fetchval("select howdah.enqueue('mail')")
    monkeypatch.setattr(engine_files, "SCHEMA_NUMBER", NEXT)
    monkeypatch.setattr(engine_files, "migrations", lambda: {NEXT: ADD_NOTE})
    await ready.execute(install_script.script(NEXT - 1))
    assert tuple(await ready.fetchrow("select id, note from howdah.jobs") or ()) == (job, "none")
    await check(ready)
    before = catalog(dsn)
    with pytest.raises(asyncpg.PostgresError, match=f"has number {NEXT}") as error:
        await ready.execute(install_script.script(NEXT - 1))
    assert error.value.sqlstate == "HW006"
    await ready.execute(install_script.script(NEXT))
    await ready.execute(install_script.script())
    assert catalog(dsn) == before


async def test_an_old_release_does_not_reinstall_its_functions(ready: Connection) -> None:
    with pytest.MonkeyPatch.context() as ahead:
        ahead.setattr(engine_files, "SCHEMA_NUMBER", NEXT)
        ahead.setattr(engine_files, "fingerprint", lambda: "of the next release")
        ahead.setattr(engine_files, "migrations", lambda: {NEXT: ADD_NOTE})
        await install(ready)
    with pytest.raises(SchemaNewer):
        await install(ready)
    fingerprint = await ready.fetchval("select fingerprint from howdah.installed")
    assert fingerprint == "of the next release"


# ── new tables and migrated tables ──


def next_tables() -> tuple[engine_files.SqlFile, ...]:
    """Return the engine of the next release, with the column that ADD_NOTE adds."""
    last = "    events_count   int          not null default 0\n"
    files = engine_files.engine()
    assert sum(last in file.text for file in files) == 1
    added = last.replace("\n", ",\n    note           text         not null default 'none'\n")
    return tuple(file._replace(text=file.text.replace(last, added)) for file in files)


@pytest.mark.parametrize("migrated", [True, False], ids=["with its migration", "without it"])
async def test_migrated_tables_equal_new_tables_unless_a_migration_is_missing(
    ready: Connection,
    dsn: str,
    empty_dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    migrated: bool,
) -> None:
    """The next release adds a column; the comparison shows when its migration is missing."""
    ahead = next_tables()
    monkeypatch.setattr(engine_files, "engine", lambda: ahead)
    monkeypatch.setattr(engine_files, "SCHEMA_NUMBER", NEXT)
    monkeypatch.setattr(engine_files, "migrations", lambda: {NEXT: ADD_NOTE} if migrated else {})
    await install(ready)
    fresh = await asyncpg.connect(empty_dsn)
    await install(fresh)
    await fresh.close()
    assert same_columns(dsn, empty_dsn) is migrated


def same_columns(first: str, second: str) -> bool:
    return catalog(first)["columns"] == catalog(second)["columns"]


def test_a_schema_migrated_from_each_release_equals_a_new_one(
    databases: Databases, tmp_path: Path
) -> None:
    """Each release installs its schema with its own code; this code migrates it."""
    if not releases.releases():
        pytest.skip(releases.NO_RELEASE)
    here = ROOT / "src"
    new = databases.create()
    for release in releases.releases():
        old = databases.create_empty()
        releases.install(releases.source_of(release, tmp_path), old)
        releases.install(here, old)
        for kind, expected in catalog(new).items():
            assert catalog(old)[kind] == expected, f"{kind} from {release}"
        databases.drop(old)
    databases.drop(new)


# ── the worker of the release before ──

APP = """
import howdah
from howdah import JobContext, Queue, Retry
from datetime import timedelta

queue = Queue()


@queue.job(max_attempts=2)
async def add(ctx: JobContext, n: int) -> int:
    await ctx.progress(50, "half way")
    await ctx.emit("code", howdah.__file__)
    if n % 10 == 0 and ctx.attempt == 1:
        raise Retry(after=timedelta(0))
    return n + 1


@queue.job(run="thread", max_attempts=1)
def fail() -> None:
    raise ValueError("expected")
"""


async def run_all_kinds_of_jobs(source: Path, dsn: str, folder: Path, jobs: int = 40) -> None:
    """Enqueue jobs of all kinds with this code; run them by a worker from this source."""
    app = folder / "app_of_the_release.py"
    app.write_text(APP)
    async with Queue(dsn) as queue:
        with releases.worker(source, dsn, app) as process:
            added = [await queue.enqueue("add", {"n": n}, max_attempts=2) for n in range(jobs)]
            failed = await queue.enqueue("fail", max_attempts=1)

            async def all_ended() -> bool:
                assert process.poll() is None, "the worker of the release ended"
                return not await queue.store.fetchval("select count(*) from howdah.jobs_live")

            await eventually(all_ended, f"a worker from {source} does its jobs")
            for n, handle in enumerate(added):
                job = await handle.job()
                assert (job.status, job.result) == (State.COMPLETED, n + 1)
                assert job.attempts == (2 if n % 10 == 0 else 1)
                events = [e async for e in handle.events() if isinstance(e, Emitted)]
                assert [Path(str(event.data)).parent.parent for event in events] == [source] * (
                    job.attempts
                ), "the worker ran the code of this source"
            assert (await failed.job()).last_error == "ValueError: expected"
            (health,) = [each for each in await queue.workers() if each.alive]
            assert health.info["pid"] == process.pid
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=20) == 0


@pytest.mark.skipif(not releases.releases(), reason=releases.NO_RELEASE)
@pytest.mark.parametrize("release", releases.releases()[-1:])
async def test_a_worker_of_the_last_release_runs_on_the_new_schema(
    dsn: str, tmp_path: Path, release: str
) -> None:
    source = releases.source_of(release, tmp_path / "sources")
    await run_all_kinds_of_jobs(source, dsn, tmp_path)


@pytest.mark.skipif(bool(releases.releases()), reason="there is a release, which is tested instead")
async def test_a_worker_of_an_earlier_commit_runs_on_the_new_schema(
    dsn: str, tmp_path: Path
) -> None:
    source = releases.source_of(releases.STAND_IN, tmp_path / "sources")
    await run_all_kinds_of_jobs(source, dsn, tmp_path)


async def test_this_worker_runs_on_the_next_schema(
    ready: Connection, dsn: str, tmp_path: Path
) -> None:
    """The next schema has a new column, index and number, and allows this code."""
    with pytest.MonkeyPatch.context() as ahead:
        ahead.setattr(engine_files, "SCHEMA_NUMBER", NEXT + 1)
        ahead.setattr(engine_files, "migrations", lambda: {NEXT: ADD_NOTE, NEXT + 1: ADD_INDEX})
        await install(ready)
    source = tmp_path / "this" / "src"
    shutil.copytree(ROOT / "src" / "howdah", source / "howdah")
    await run_all_kinds_of_jobs(source, dsn, tmp_path)
    assert await ready.fetchval("select count(*) from howdah.jobs where note = 'none'") == 41
