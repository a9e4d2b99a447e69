"""Only the server sees the password of a DSN.

Real processes with right and wrong passwords: it is in no log at any level, no error, no traceback,
no `ps` output and no table. `dsn_redaction.py` decides what is shown. If a password is unusual,
more is hidden.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
import subprocess
import sys
import traceback
from collections.abc import Generator
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah import HowdahError, Queue, Unreachable
from howdah.client.sync import SyncQueue
from howdah.events import Emitted
from howdah.store.dsn_redaction import without_password
from tests.cli.support import environment, run, started
from tests.fuzz.budget import examples
from tests.support.postgres_server import PgServer, running_server
from tests.support.processes import ROOT
from tests.support.waiting import wait_until

# Unique to this process: `ps` also shows tests that run in parallel.
SECRET = f"k7Qz-hunter{secrets.token_hex(4)}-Xw9"
WRONG = f"p4Vr-guessed{secrets.token_hex(4)}-Zt3"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[PgServer]:
    with running_server(tmp_path_factory.mktemp("secrets"), password=SECRET) as started:
        SyncQueue(dsn(started)).install()
        yield started


def dsn(server: PgServer, password: str = SECRET) -> str:
    return f"postgresql://postgres:{password}@127.0.0.1:{server.port}/postgres?sslmode=disable"


def command_lines() -> str:
    """Return what `ps` shows to every user of the machine."""
    done = subprocess.run(["ps", "-eww", "-o", "args="], capture_output=True, text=True, check=True)
    return done.stdout


def as_text(server: PgServer) -> str:
    """Return every row of every table in the schema, and the sessions of the server."""
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        tables = connection.execute(
            "select c.oid::regclass::text from pg_class as c "
            "where relnamespace = 'howdah'::regnamespace and relkind in ('r', 'p', 'v')"
        ).fetchall()
        rows: list[str] = []
        for (table,) in [*tables, ("pg_stat_activity",)]:
            rows += [str(row) for row in connection.execute(f"select * from {table}".encode())]
    return "\n".join(rows)


def test_the_password_of_a_worker_is_nowhere(server: PgServer) -> None:
    """`--dsn` on the command line, everything logged, a child process, a job that fails."""
    app = "tests.security.app:queue"
    with started(
        *("worker", app, "--dsn", dsn(server), "--log-level", "debug"), cwd=ROOT
    ) as worker:
        with SyncQueue(dsn(server)) as queue:
            handle = queue.enqueue("in_a_process")
            failing = queue.enqueue("fails")
            pid = next(event.data for event in handle.events() if isinstance(event, Emitted))
            wait_until(lambda: queue.get(failing.id).status.finished, "the other job has failed")
            processes = command_lines()
            assert app in processes, "ps shows the worker itself"
            assert SECRET not in processes
            child = psutil.Process(pid)
            assert child.parent() == psutil.Process(worker.pid)
            assert SECRET not in " ".join(child.cmdline())
            assert "127.0.0.1" in " ".join(psutil.Process(worker.pid).cmdline()), (
                "the other parts of the DSN are still shown"
            )
            rows = as_text(server)
            assert str(worker.pid) in rows, "the worker is in the workers table"
            assert SECRET not in rows
            queue.cancel([handle.id])
        worker.terminate()
        out, err = worker.communicate(timeout=60)  # longer than its stop timeout
    assert "worker.started" in err
    assert "as it was asked to" in err
    assert SECRET not in out + err


def test_a_dsn_in_the_environment_is_on_no_command_line(server: PgServer) -> None:
    with started("worker", "tests.security.app:queue", cwd=ROOT, HOWDAH_DSN=dsn(server)) as worker:
        assert worker.stderr
        assert any("worker.started" in line for line in worker.stderr)
        assert SECRET not in command_lines()


@pytest.mark.parametrize(
    "args",
    [
        ("jobs",),
        ("stats", "--json"),
        ("enqueue", "mail"),
        ("install",),
        ("recover",),
        ("cancel", "00000000-0000-0000-0000-000000000000"),
        ("worker", "tests.security.app:queue", "--log-level", "debug"),
    ],
)
def test_a_wrong_password_is_not_repeated_by_any_command(
    server: PgServer, args: tuple[str, ...]
) -> None:
    done = run(*args, "--dsn", dsn(server, WRONG), cwd=ROOT)
    assert done.returncode == 4, done.stderr
    assert "password authentication failed" in done.stderr
    assert WRONG not in done.stdout + done.stderr


PROGRAM = """
import asyncio, logging, sys
from howdah import Queue
logging.basicConfig(level=logging.DEBUG)
queue = Queue(sys.argv[1])
print(queue, repr(queue), vars(queue).keys())
@queue.job
async def mail() -> None: ...
async def main() -> None:
    try:
        await mail.enqueue()
    except Exception:
        logging.exception("logged with its traceback: %r", queue)
    async with queue.worker():
        pass
asyncio.run(main(), debug=True)
"""


def test_a_traceback_of_a_users_program_does_not_show_the_password(server: PgServer) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", PROGRAM, dsn(server, WRONG)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.count("Traceback (most recent call last)") >= 2
    assert "refused the connection" in done.stderr
    assert WRONG not in done.stdout + done.stderr


async def test_a_password_that_changes_while_a_worker_works_is_not_logged(
    server: PgServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    role, password = "changing", "n3Wly-made-Qq1"
    server.value(f"create role {role} login superuser password '{password}'")
    try:
        own = dsn(server, password).replace("postgres:", f"{role}:", 1)
        queue = Queue(own)

        @queue.job
        async def mail() -> None: ...

        worker = queue.worker()
        await worker.start()
        server.value(f"alter role {role} password 'another'")
        server.value(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", role
        )
        async with asyncio.timeout(20):
            await worker.stopping()
        with pytest.raises(Unreachable, match="refused the connection"):
            await worker.__aexit__(None, None, None)
        await queue.close()
    finally:
        server.value(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", role
        )
        server.value(f"drop role {role}")
    assert password not in caplog.text


# ── invalid DSNs, whose parts are parsed as other fields ──

# Common mistakes, for example @ instead of %40 in a password.
CARELESS = [
    "postgresql://me:{}@127.0.0.1:1/db",
    "postgresql://me:a@{}@127.0.0.1:1/db",
    "postgresql://me:a/{}@127.0.0.1:1/db",
    "postgresql://me:{}/b@127.0.0.1:1/db",
    "postgresql://me:1/{}@127.0.0.1:1/db",
    "postgresql://me:a?{}@127.0.0.1:1/db",
    "postgresql://me:a#{}@127.0.0.1:1/db",
    "postgresql://me:a:{}@127.0.0.1:1/db",
    "postgresql://me:[{}@127.0.0.1:1/db",
    "postgresql://me:%zz{}@127.0.0.1:1/db",
    "postgresql://me:{}",
    "postgresql://me:{}/db",
    "postgresql://127.0.0.1:1/db?user=me&password={}",
    "postgresql://127.0.0.1:1/db?user=me&sslpassword={}&sslmode=nonsense",
    "postgresql://me:{}@127.0.0.1:1/db?sslmode=nonsense",
    "postgresql://me:{}@127.0.0.1:port/db",
    "postgresql://me:{}@127.0.0.1:1/db?host=",
    "postgresql+psycopg://me:{}@127.0.0.1:1,127.0.0.1:2/db",
    "mysql://me:{}@127.0.0.1:1/db",
    "host=127.0.0.1 user=me password={} dbname=db",
    "host=127.0.0.1 user=me password = 'with \\' quotes {}' dbname=db",
    "password={}",
    "me:{}@127.0.0.1/db?password={}",
]


@pytest.mark.parametrize("careless", CARELESS)
async def test_a_careless_dsn_is_refused_without_its_password(careless: str) -> None:
    dsn = careless.replace("{}", SECRET)
    with pytest.raises((HowdahError, OSError)) as refused:
        await Queue(dsn).enqueue("mail")
    assert isinstance(refused.value, HowdahError), "the error is one of ours"
    everything = "".join(traceback.format_exception(refused.value))
    for part in (SECRET, *SECRET.split("-")):
        assert part not in everything


@pytest.mark.parametrize("careless", [dsn for dsn in CARELESS if "://" in dsn][::3])
def test_a_careless_dsn_is_refused_by_the_command_line_too(careless: str) -> None:
    done = run("jobs", "--dsn", careless.replace("{}", SECRET))
    assert done.returncode in (2, 4), done.stderr
    assert "Traceback" not in done.stderr
    for part in (SECRET, *SECRET.split("-")):
        assert part not in done.stderr + done.stdout


MARK = "zQ9"
passwords = st.tuples(st.text(max_size=12), st.text(max_size=12)).map(MARK.join)


@given(passwords)
@examples(300)
def test_no_password_is_ever_shown(password: str) -> None:
    for template in CARELESS[:1] + CARELESS[12:13] + CARELESS[16:18]:
        assert MARK not in without_password(template.replace("{}", quote(password, safe="")))
        if "&" not in password:
            assert MARK not in without_password(template.replace("{}", password))


def test_the_other_parts_of_a_dsn_stay_readable() -> None:
    for dsn in (
        "postgresql://me@host:5432/db?sslmode=require",
        "postgresql:///db?host=/run/postgresql&port=5432",
        "postgresql://[::1]:5432/db?application_name=a@b",
        "postgresql://a:1,b:2/db",
    ):
        assert without_password(dsn) == dsn
    assert without_password("postgresql://me:x@a:1,b:2/db") == "postgresql://me:***@a:1,b:2/db"


async def test_the_error_of_an_invalid_dsn_explains_how_to_write_the_password() -> None:
    with pytest.raises(Unreachable, match="write @ as %40, / as %2F"):
        await Queue(f"postgresql://me:{SECRET}/x@127.0.0.1/db").enqueue("mail")


def test_the_files_of_the_embedded_server_contain_no_secret(tmp_path: Path) -> None:
    """The embedded server has no password that could leak: its DSN names a socket."""
    done = run("pg", "status", "--json", HOWDAH_HOME=str(tmp_path / "home"))
    assert ":" not in json.loads(done.stdout)["dsn"].partition("://")[2].partition("@")[0]
