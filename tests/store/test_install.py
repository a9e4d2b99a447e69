"""Install creates or upgrades the schema, and never leaves it half done."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import TypeAlias

import asyncpg
import psycopg
import pytest

from howdah import Queue
from howdah.embedded import find_psql
from howdah.errors import NotAllowed, SchemaMissing, SchemaNewer, SchemaOlder
from howdah.store import engine_files, install_script
from howdah.store.install import check, install, installed
from tests.support import Database
from tests.support.catalog import catalog
from tests.support.databases import Databases

pytestmark = pytest.mark.engine

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@pytest.fixture
async def empty(empty_dsn: str) -> AsyncGenerator[Connection]:
    connection = await asyncpg.connect(empty_dsn)
    yield connection
    await connection.close()


@pytest.fixture
async def ready(dsn: str) -> AsyncGenerator[Connection]:
    connection = await asyncpg.connect(dsn)
    yield connection
    await connection.close()


@pytest.fixture
def role(databases: Databases) -> Generator[str]:
    """A role without privileges. Request it before the database, so that it is dropped after it."""
    name = f"howdah_role_{secrets.token_hex(4)}"
    with psycopg.connect(databases.server_dsn, autocommit=True) as connection:
        connection.execute(f"create role {name}".encode())
        yield name
        connection.execute(f"drop role {name}".encode())


async def test_install_returns_whether_it_changed_anything(empty: Connection) -> None:
    assert await installed(empty) is None
    assert await install(empty) is True
    assert await install(empty) is False
    version = await installed(empty)
    numbers = engine_files.SCHEMA_NUMBER, engine_files.COMPATIBLE_FROM
    assert version == (*numbers, engine_files.fingerprint(), engine_files.tables_fingerprint())


async def test_a_second_install_changes_nothing(ready: Connection, dsn: str) -> None:
    before = catalog(dsn)
    installed_at = await ready.fetchval("select installed_at from howdah.installed")
    assert await install(ready) is False
    assert catalog(dsn) == before
    assert await ready.fetchval("select installed_at from howdah.installed") == installed_at


async def test_functions_of_other_code_are_replaced(ready: Connection, dsn: str) -> None:
    before = catalog(dsn)
    await ready.execute(
        "create or replace function howdah.today() returns date language sql stable "
        "as $$ select date '2000-01-01' $$"
    )
    await ready.execute(
        "create or replace trigger take_plain_insert after insert on howdah.jobs "
        "for each statement execute function howdah.take_plain_insert()"
    )
    await ready.execute("update howdah.installed set fingerprint = 'of other code'")
    assert catalog(dsn) != before
    assert await install(ready) is True
    assert catalog(dsn) == before


async def test_a_function_that_was_dropped_comes_back(ready: Connection, dsn: str) -> None:
    before = catalog(dsn)
    await ready.execute("drop function howdah.deregister(text)")
    assert catalog(dsn) != before
    assert await install(ready) is True
    assert catalog(dsn) == before
    assert await install(ready) is False


async def test_tables_of_a_development_version_are_refused(ready: Connection, dsn: str) -> None:
    """No migration starts there: neither a worker nor an install may use these tables."""
    await ready.execute("select howdah.enqueue('mail')")
    for change in (
        "update howdah.installed set tables = 'of last week'",
        "alter table howdah.installed drop column tables",
    ):
        await ready.execute(change)
        before = catalog(dsn)
        for action in (check, install):
            with pytest.raises(SchemaOlder, match=r"made by a development version.*drop"):
                await action(ready)
        assert catalog(dsn) == before
    assert await ready.fetchval("select count(*) from howdah.jobs") == 1
    await ready.execute("drop schema howdah cascade")
    assert await install(ready) is True
    await check(ready)


async def test_comments_and_spaces_do_not_change_the_fingerprint_of_the_tables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fingerprint_with_first(text: str) -> str:
        first, *rest = before
        monkeypatch.setattr(engine_files, "engine", lambda: (first._replace(text=text), *rest))
        engine_files.tables_fingerprint.cache_clear()
        return engine_files.tables_fingerprint()

    before = engine_files.engine()
    assert before[0].holds_data
    try:
        same = fingerprint_with_first(before[0].text)
        assert (
            fingerprint_with_first("-- another comment\n\n" + before[0].text.replace("    ", "\t"))
            == same
        )
        assert fingerprint_with_first(before[0].text + "create table howdah.more ();") != same
    finally:
        monkeypatch.undo()
        engine_files.tables_fingerprint.cache_clear()


async def test_jobs_stay_when_functions_are_replaced(ready: Connection) -> None:
    job = await ready.fetchval("select howdah.enqueue('mail')")
    await ready.execute("update howdah.installed set fingerprint = 'of other code'")
    assert await install(ready) is True
    assert await ready.fetchval("select id from howdah.claim_job_batch('w', '{mail}')") == job


async def test_an_ordinary_role_can_install_and_use_the_schema(
    role: str, empty: Connection
) -> None:
    database = await empty.fetchval("select current_database()")
    await empty.execute(f"grant create on database {database} to {role}")
    await empty.execute(f"set session authorization {role}")
    assert await install(empty) is True
    assert (
        await empty.fetchval("select rolsuper from pg_roles where rolname = current_user") is False
    )
    job = await empty.fetchval("select howdah.enqueue('mail')")
    assert await empty.fetchval("select id from howdah.claim_job_batch('w', '{mail}')") == job
    moved = await empty.fetchval("select howdah.complete('w', array[$1::uuid], '{1}')", job)
    assert moved == job
    await empty.fetch("select howdah.prune()")
    await empty.fetch("select howdah.prepare_days(5)")
    await empty.execute("update howdah.installed set fingerprint = 'of other code'")
    assert await install(empty) is True
    owners = await empty.fetch(
        "select distinct relowner::regrole::text from pg_class "
        "where relnamespace = 'howdah'::regnamespace"
    )
    assert [owner[0] for owner in owners] == [role]


async def test_a_role_that_may_not_create_a_schema_is_refused(empty: Connection, role: str) -> None:
    await empty.execute(f"set session authorization {role}")
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await install(empty)
    assert await installed(empty) is None


async def test_a_schema_of_another_role_is_refused(role: str, empty: Connection) -> None:
    """Its functions would run the owner's code with the rights of the installing role."""
    database = await empty.fetchval("select current_database()")
    await empty.execute(f"grant create on database {database} to {role}")
    await empty.execute(f"set session authorization {role}")
    await empty.execute("create schema howdah")
    await empty.execute("reset session authorization")
    with pytest.raises(NotAllowed, match=f"belongs to the role {role}.*install as {role}"):
        await install(empty)
    assert (
        await empty.fetch("select from pg_class where relnamespace = 'howdah'::regnamespace") == []
    )


@pytest.mark.parametrize(
    "foreign",
    [
        "alter table howdah.job_events owner to {}",
        "alter function howdah.clock() owner to {}",
        "alter domain howdah.percent owner to {}",
    ],
)
async def test_an_object_of_another_role_in_the_schema_is_refused(
    role: str, ready: Connection, foreign: str
) -> None:
    await ready.execute(foreign.format(role))
    with pytest.raises(NotAllowed, match=f"contains an object of another role: .*{role}"):
        await install(ready)


async def test_the_schema_needs_no_extension(ready: Connection) -> None:
    extensions = await ready.fetch("select extname from pg_extension")
    assert [row[0] for row in extensions] == ["plpgsql"]


async def test_a_schema_that_another_process_made_meanwhile_is_seen(
    empty: Connection, empty_dsn: str
) -> None:
    """A transaction that waited for the lock checks again, and must not use an old cache."""
    assert await installed(empty) is None
    async with empty.transaction():
        assert await installed(empty) is None
        with psycopg.connect(empty_dsn) as other:
            other.execute(
                "create schema howdah; create table howdah.installed as "
                "select 7 as schema_number, 7 as compatible_from, 'theirs' as fingerprint"
            )
        assert await installed(empty) == (7, 7, "theirs", None)


async def test_a_failed_install_leaves_nothing(
    empty: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_files, "finish_install", lambda: "select 1 / 0")
    with pytest.raises(asyncpg.DivisionByZeroError):
        await install(empty)
    assert await empty.fetchval("select to_regnamespace('howdah') is null")
    monkeypatch.undo()
    assert await install(empty) is True


# ── the install script ──


def test_the_script_makes_the_same_schema(empty_dsn: str, dsn: str) -> None:
    with psycopg.connect(empty_dsn) as connection, connection.transaction():
        connection.execute(install_script.script().encode())
    assert catalog(empty_dsn) == catalog(dsn)
    db = Database(empty_dsn)
    job = db.enqueue("mail")
    assert db.complete(db.claim("mail")) == {job}
    db.close()


def test_psql_makes_the_same_schema_from_the_script(
    empty_dsn: str, dsn: str, tmp_path: Path
) -> None:
    psql = find_psql()
    assert psql is not None
    file = tmp_path / "howdah.sql"
    file.write_text(install_script.script(), encoding="utf-8")
    command = [psql, "--no-psqlrc", "--quiet", "--single-transaction", "-v", "ON_ERROR_STOP=1"]
    result = subprocess.run(
        [*command, "-f", str(file), empty_dsn], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert catalog(empty_dsn) == catalog(dsn)


async def test_the_schema_from_the_script_passes_the_check(
    empty: Connection, empty_dsn: str
) -> None:
    with psycopg.connect(empty_dsn) as connection:
        connection.execute(install_script.script().encode())
    await check(empty)
    assert await install(empty) is False


# ── an incompatible schema ──


async def test_a_missing_schema_is_refused_with_the_command_to_run(empty_dsn: str) -> None:
    async with Queue(empty_dsn) as queue:
        with pytest.raises(SchemaMissing, match="no howdah schema: run `howdah install`"):
            await queue.claim(["mail"], worker_id="first")


async def test_an_older_schema_is_refused_with_the_command_to_run(
    ready: Connection, dsn: str
) -> None:
    await ready.execute("update howdah.installed set schema_number = 0, compatible_from = 0")
    async with Queue(dsn) as queue:
        with pytest.raises(SchemaOlder, match=r"has number 0, this code needs \d+: run `howdah in"):
            await queue.claim(["mail"], worker_id="first")


async def test_a_newer_schema_is_refused_with_the_advice_to_upgrade(
    ready: Connection, dsn: str
) -> None:
    await ready.execute("update howdah.installed set schema_number = 99, compatible_from = 98")
    async with Queue(dsn) as queue:
        with pytest.raises(SchemaNewer, match=r"number 99 .* for 98 and newer.*upgrade the howdah"):
            await queue.claim(["mail"], worker_id="first")
    with pytest.raises(SchemaNewer, match="upgrade the howdah package"):
        await install(ready)
    assert await ready.fetchval("select schema_number from howdah.installed") == 99


async def test_a_newer_compatible_schema_is_used(ready: Connection, dsn: str) -> None:
    await ready.execute("update howdah.installed set schema_number = 99, compatible_from = 1")
    async with Queue(dsn) as queue:
        assert await queue.claim(["mail"], worker_id="first") == []
