"""The output of `howdah sql` works in migration tools, also twice, and leaves no setting changed.

The tools are real, and the migrations are those of docs/guides/migrations.md.
"""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from howdah.embedded import find_psql
from howdah.store import install_script
from tests.support import Database
from tests.support.catalog import catalog
from tests.support.databases import Databases
from tests.support.processes import ROOT

pytestmark = pytest.mark.slow

GUIDE = (ROOT / "docs/guides/migrations.md").read_text(encoding="utf-8")
SETTINGS = """
    select name, setting from pg_settings
    where name not in ('transaction_isolation', 'transaction_deferrable', 'transaction_read_only')
"""
SESSION_SETTINGS = {
    "search_path": "other, public",
    "check_function_bodies": "off",
    "standard_conforming_strings": "off",
    "client_min_messages": "warning",
    "escape_string_warning": "off",
}


def recipe(path: str) -> str:
    """Return the file that the guide shows under this path."""
    match = re.search(rf"```python\n# {re.escape(path)}\n(.*?)```", GUIDE, re.DOTALL)
    assert match is not None, path
    return match[1]


def run(*command: str, cwd: Path, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(cwd), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def howdah_sql(to: Path, *options: str) -> str:
    text = run("-m", "howdah", "sql", *options, cwd=ROOT)
    to.write_text(text, encoding="utf-8")
    return text


# ── Alembic ──

ENV = """
import asyncio, os
from alembic import context
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

url = os.environ["URL"]


def work(connection):
    context.configure(connection=connection)
    with context.begin_transaction():
        context.run_migrations()


async def work_async():
    async with create_async_engine(url).connect() as connection:
        await connection.run_sync(work)
        await connection.commit()


if context.is_offline_mode():
    context.configure(url=url, literal_binds=True, dialect_opts={"paramstyle": "named"})
    with context.begin_transaction():
        context.run_migrations()
elif "asyncpg" in url:
    asyncio.run(work_async())
else:
    with create_engine(url).connect() as connection:
        work(connection)
"""

LATER = """
from pathlib import Path
from alembic import op

revision, down_revision = "0002", "0001"


def upgrade():
    op.execute(Path(__file__).with_name("howdah_1.sql").read_text(encoding="utf-8"))
    op.execute(Path(__file__).with_name("howdah_from_1.sql").read_text(encoding="utf-8"))
    op.execute(Path(__file__).with_name("grants.sql").read_text(encoding="utf-8"))
    op.execute("create table made_after_howdah (id int)")
"""


@pytest.fixture
def role(databases: Databases) -> Generator[str]:
    """A role whose name needs quotes. Request it before the databases: it is dropped last."""
    name = f"it's a $howdah$ role {secrets.token_hex(4)}"
    with psycopg.connect(databases.server_dsn, autocommit=True) as server:
        server.execute(f'create role "{name}"'.encode())
        yield name
        server.execute(f'drop role "{name}"'.encode())


@pytest.fixture
def alembic(role: str, tmp_path: Path) -> Path:
    versions = tmp_path / "migrations" / "versions"
    versions.mkdir(parents=True)
    (tmp_path / "alembic.ini").write_text(
        "[alembic]\nscript_location = %(here)s/migrations\npath_separator = os\n"
    )
    (tmp_path / "migrations" / "env.py").write_text(ENV)
    (versions / "0001_howdah.py").write_text(recipe("migrations/versions/0001_howdah.py"))
    (versions / "0002_later.py").write_text(LATER)
    howdah_sql(versions / "howdah_1.sql")
    howdah_sql(versions / "howdah_from_1.sql", "--from", "1")
    all_roles = ("--producer", role, "--worker", role, "--observer", role)
    howdah_sql(versions / "grants.sql", "--grants", *all_roles)
    return tmp_path


def url(dsn: str, driver: str) -> str:
    """Return the DSN as a SQLAlchemy URL for this driver."""
    return re.sub(r"^postgres(ql)?://", f"postgresql+{driver}://", dsn)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2", "asyncpg"])
def test_alembic_runs_the_script_twice(
    role: str, alembic: Path, empty_dsn: str, dsn: str, driver: str
) -> None:
    address = url(empty_dsn, driver)
    run("-m", "alembic", "upgrade", "0001", cwd=alembic, URL=address)
    assert catalog(empty_dsn) == catalog(dsn)
    db = Database(empty_dsn)
    job = db.enqueue("mail")
    run("-m", "alembic", "upgrade", "head", cwd=alembic, URL=address)
    assert catalog(empty_dsn)["columns"] == catalog(dsn)["columns"]
    with psycopg.connect(empty_dsn) as connection:
        may = "select has_table_privilege(%s, 'howdah.jobs', 'select')"
        assert connection.execute(may, [role]).fetchone() == (True,)
    assert db.complete(db.claim("mail")) == {job}
    db.close()
    with psycopg.connect(empty_dsn) as connection:
        assert connection.execute("select to_regclass('public.made_after_howdah')").fetchone() != (
            None,
        )


def test_alembic_prints_the_script_for_psql(alembic: Path, empty_dsn: str, dsn: str) -> None:
    offline = url(empty_dsn, "psycopg")
    printed = run("-m", "alembic", "upgrade", "head", "--sql", cwd=alembic, URL=offline)
    file = alembic / "offline.sql"
    file.write_text(printed, encoding="utf-8")
    psql(empty_dsn, "-f", str(file))
    assert catalog(empty_dsn)["columns"] == catalog(dsn)["columns"]


# ── Django ──

SETTINGS_PY = """
import os
SECRET_KEY = "x"
INSTALLED_APPS = ["shop"]
USE_TZ = True
DATABASES = {"default": {"ENGINE": "django.db.backends.postgresql", **eval(os.environ["DATABASE"])}}
"""

LATER_DJANGO = """
from pathlib import Path
from django.db import migrations

def text(name):
    return Path(__file__).with_name(name).read_text(encoding="utf-8")

class Migration(migrations.Migration):
    dependencies = [("shop", "0001_howdah")]
    operations = [
        migrations.RunSQL(text("howdah_1.sql")),
        migrations.RunSQL(text("howdah_from_1.sql")),
        migrations.RunSQL("create table made_after_howdah (id int)"),
    ]
"""


def test_django_runs_the_script_twice(tmp_path: Path, empty_dsn: str, dsn: str) -> None:
    folder = tmp_path / "shop" / "migrations"
    folder.mkdir(parents=True)
    (tmp_path / "shop" / "__init__.py").touch()
    (folder / "__init__.py").touch()
    (tmp_path / "shop_settings.py").write_text(SETTINGS_PY)
    (folder / "0001_howdah.py").write_text(recipe("shop/migrations/0001_howdah.py"))
    (folder / "0002_later.py").write_text(LATER_DJANGO)
    howdah_sql(folder / "howdah_1.sql")
    howdah_sql(folder / "howdah_from_1.sql", "--from", "1")
    parts = conninfo_to_dict(empty_dsn)
    names = {
        "NAME": "dbname",
        "USER": "user",
        "PASSWORD": "password",
        "HOST": "host",
        "PORT": "port",
    }
    database = repr({name: str(parts.get(keyword) or "") for name, keyword in names.items()})
    environment_of_django = {"DJANGO_SETTINGS_MODULE": "shop_settings", "DATABASE": database}
    run("-m", "django", "migrate", "shop", "0001", cwd=tmp_path, **environment_of_django)
    assert catalog(empty_dsn) == catalog(dsn)
    db = Database(empty_dsn)
    job = db.enqueue("mail")
    run("-m", "django", "migrate", cwd=tmp_path, **environment_of_django)
    assert catalog(empty_dsn) == catalog(dsn)
    assert db.complete(db.claim("mail")) == {job}
    db.close()
    with psycopg.connect(empty_dsn) as connection:
        assert connection.execute("select to_regclass('public.made_after_howdah')").fetchone() != (
            None,
        )


# ── psql ──


def psql(dsn: str, *options: str, commands: str = "") -> str:
    program = find_psql()
    assert program is not None
    command = [program, "--no-psqlrc", "--quiet", "-At", "-v", "ON_ERROR_STOP=1", *options, dsn]
    result = subprocess.run(command, input=commands, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def show() -> str:
    return "".join(f"show {name};\n" for name in SESSION_SETTINGS)


def set_settings(word: str = "set") -> str:
    return "".join(f"{word} {name} = {value};\n" for name, value in SESSION_SETTINGS.items())


@pytest.mark.engine
@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("begin;\n", "commit;\n")], ids=["alone", "transaction"]
)
def test_psql_runs_the_script_twice_and_keeps_its_settings(
    empty_dsn: str, dsn: str, tmp_path: Path, before: str, after: str
) -> None:
    file = tmp_path / "howdah.sql"
    howdah_sql(file)
    twice = f"\\i {file}\n{show()}\\i {file}\n{show()}"
    output = psql(
        empty_dsn, commands=f"create schema other;{set_settings()}{before}{twice}{after}{show()}"
    )
    assert output.splitlines() == list(SESSION_SETTINGS.values()) * 3
    assert catalog(empty_dsn) == catalog(dsn)


@pytest.mark.engine
def test_psql_runs_the_script_in_one_transaction(empty_dsn: str, dsn: str, tmp_path: Path) -> None:
    file = tmp_path / "howdah.sql"
    howdah_sql(file)
    psql(empty_dsn, "-1", "-f", str(file), "-f", str(file))
    assert catalog(empty_dsn) == catalog(dsn)


@pytest.mark.engine
def test_a_local_setting_of_the_caller_ends_with_its_transaction(
    empty_dsn: str, tmp_path: Path
) -> None:
    file = tmp_path / "howdah.sql"
    howdah_sql(file)
    local = set_settings("set local")
    before, _, after = psql(
        empty_dsn,
        commands=f"{show()}select '--';begin;{local}\\i {file}\ncommit;select '--';{show()}",
    ).partition("--\n--\n")
    assert before == after
    assert before


# ── running it again, and refusals ──


@pytest.mark.engine
async def test_a_second_run_replaces_functions_and_changes_nothing_else(dsn: str) -> None:
    before = catalog(dsn)
    connection = await asyncpg.connect(dsn)
    job = await connection.fetchval("select howdah.enqueue('mail')")
    await connection.execute(
        "update howdah.options set value = '9' where name = 'max_lost_workers'"
    )
    changed = catalog(dsn)
    installed_at = await connection.fetchval("select installed_at from howdah.installed")
    await connection.execute(
        "create or replace function howdah.today() returns date language sql stable "
        "as $$ select date '2000-01-01' $$"
    )
    settings = await connection.fetch(SETTINGS)
    await connection.execute(install_script.script())
    assert await connection.fetch(SETTINGS) == settings
    assert catalog(dsn) == changed
    assert catalog(dsn)["functions"] == before["functions"]
    assert await connection.fetchval("select installed_at from howdah.installed") == installed_at
    assert await connection.fetchval("select id from howdah.jobs") == job
    await connection.close()


async def assert_refused(dsn: str, text: str, sqlstate: str, match: str) -> None:
    """Run the script; check its error, and that nothing has changed."""
    connection = await asyncpg.connect(dsn)
    has_schema = await connection.fetchval("select to_regclass('howdah.installed') is not null")
    before = catalog(dsn) if has_schema else None
    with pytest.raises(asyncpg.PostgresError, match=match) as error:
        await connection.execute(text)
    assert error.value.sqlstate == sqlstate
    assert await connection.fetchval("show search_path") == '"$user", public'
    assert (catalog(dsn) if has_schema else None) == before
    await connection.close()


@pytest.mark.engine
async def test_a_database_with_another_schema_number_is_refused(dsn: str, empty_dsn: str) -> None:
    await assert_refused(
        dsn, install_script.script(0), "HW006", "without howdah, and this one has schema number 1"
    )
    await assert_refused(
        empty_dsn, install_script.script(1), "HW006", "number 1, and this database has no howdah"
    )
    with psycopg.connect(dsn) as connection:
        connection.execute("update howdah.installed set schema_number = 7")
    await assert_refused(
        dsn, install_script.script(1), "HW006", "from howdah schema number 1.*has number 7"
    )
    await assert_refused(
        dsn, install_script.script(0), "HW006", "without howdah, and this one has schema number 7"
    )
    await assert_refused(
        dsn, install_script.script(), "HW005", "has number 7, newer than this code's 1: upgrade"
    )


@pytest.mark.engine
async def test_the_script_from_zero_makes_the_same_schema(dsn: str, empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn) as connection:
        connection.execute(install_script.script(0).encode())
    assert catalog(empty_dsn) == catalog(dsn)


@pytest.mark.engine
async def test_a_schema_of_a_development_version_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("update howdah.installed set tables = 'of last week'")
    for text in (install_script.script(), install_script.script(1)):
        await assert_refused(dsn, text, "HW004", "made by a development version.*drop schema")


@pytest.mark.engine
async def test_a_schema_of_another_role_is_refused(databases: Databases, empty_dsn: str) -> None:
    role = f"howdah_role_{secrets.token_hex(4)}"
    with psycopg.connect(databases.server_dsn, autocommit=True) as server:
        server.execute(f"create role {role}".encode())
        with psycopg.connect(empty_dsn, autocommit=True) as connection:
            connection.execute(f"create schema howdah authorization {role}".encode())
        for text in (install_script.script(), install_script.script(0), install_script.script(1)):
            await assert_refused(
                empty_dsn, text, "HW003", f"belongs to the role {role}, and you are"
            )
        with psycopg.connect(empty_dsn, autocommit=True) as connection:
            connection.execute("drop schema howdah")
        server.execute(f"drop role {role}".encode())


def test_the_script_has_no_characters_that_a_tool_replaces() -> None:
    """SQLAlchemy reads `:word` as a parameter, and offline Alembic replaces tabs."""
    text = install_script.script()
    assert "\t" not in text
    assert re.findall(r"(?<![:\w\x5c]):(\w+)(?![:\w])", text) == []
    assert "\\:" not in text


@pytest.mark.engine
def test_the_script_can_run_many_times_at_once(empty_dsn: str, dsn: str) -> None:
    def run_script(_: int) -> None:
        with psycopg.connect(empty_dsn, autocommit=True) as connection:
            connection.execute(install_script.script().encode())

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run_script, range(8)))
    assert catalog(empty_dsn) == catalog(dsn)
