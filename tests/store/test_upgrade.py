"""Upgrade takes tables forward by migrations, with the jobs in them, and all or nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TypeAlias

import asyncpg
import pytest

from howdah import Queue
from howdah.errors import SchemaNewer, SchemaOlder
from howdah.store import bundle
from howdah.store.install import check, install

pytestmark = pytest.mark.engine

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

NEXT = bundle.SCHEMA_NUMBER + 1
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
    monkeypatch.setattr(bundle, "SCHEMA_NUMBER", NEXT + 1)
    monkeypatch.setattr(bundle, "migrations", lambda: {NEXT + 1: ADD_INDEX, NEXT: ADD_NOTE})


async def lead_a_life(connection: Connection) -> None:
    job = await connection.fetchval("select howdah.enqueue('mail')")
    (claim,) = await connection.fetch("select * from howdah.claim_job_batch('w', '{mail}', 1)")
    assert claim["id"] == job
    moved = await connection.fetchval("select howdah.complete('w', array[$1::uuid], '{1}')", job)
    assert moved == job


@pytest.mark.usefixtures("next_release")
async def test_the_next_release_asks_for_an_install_and_goes_forward(
    ready: Connection, dsn: str
) -> None:
    await lead_a_life(ready)
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
    await lead_a_life(ready)
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
    monkeypatch.setattr(bundle, "SCHEMA_NUMBER", NEXT + 1)
    monkeypatch.setattr(bundle, "migrations", lambda: {NEXT: ADD_NOTE, NEXT + 1: "select 1 / 0"})
    with pytest.raises(asyncpg.DivisionByZeroError):
        await install(ready)
    monkeypatch.undo()
    await check(ready)
    assert await install(ready) is False
    await lead_a_life(ready)


async def test_the_last_release_goes_on_where_the_new_one_lets_it(
    ready: Connection, dsn: str
) -> None:
    with pytest.MonkeyPatch.context() as ahead:
        ahead.setattr(bundle, "SCHEMA_NUMBER", NEXT)
        ahead.setattr(bundle, "migrations", lambda: {NEXT: ADD_NOTE})
        await install(ready)
    async with Queue(dsn) as queue:
        assert await queue.claim(["mail"], worker_id="first") == []
    with pytest.MonkeyPatch.context() as ahead:
        ahead.setattr(bundle, "SCHEMA_NUMBER", NEXT + 1)
        ahead.setattr(bundle, "COMPATIBLE_FROM", NEXT)
        ahead.setattr(bundle, "migrations", lambda: {NEXT + 1: ADD_INDEX})
        await install(ready)
    with pytest.raises(SchemaNewer):
        await check(ready)


async def test_an_old_release_does_not_put_its_functions_back(ready: Connection) -> None:
    with pytest.MonkeyPatch.context() as ahead:
        ahead.setattr(bundle, "SCHEMA_NUMBER", NEXT)
        ahead.setattr(bundle, "fingerprint", lambda: "of the next release")
        ahead.setattr(bundle, "migrations", lambda: {NEXT: ADD_NOTE})
        await install(ready)
    with pytest.raises(SchemaNewer):
        await install(ready)
    found = await ready.fetchval("select fingerprint from howdah.installed")
    assert found == "of the next release"
