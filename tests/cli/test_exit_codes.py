"""A user's mistake is one line on stderr and a telling exit code, never a traceback."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
import sys
from uuid import uuid4

import psycopg
import pytest
from click.testing import Result

from howdah.client.sync import SyncQueue
from tests.cli.support import Cli, environment, invoke, started
from tests.support.databases import Databases


def says(result: Result, code: int, *words: str) -> None:
    """Check that a command complained in one line, on stderr alone, and with this code."""
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    for word in words:
        assert word in result.stderr


def test_2_a_dsn_that_is_none() -> None:
    says(invoke("jobs", "--dsn", "nonsense"), 2, "postgresql://user:password@host:5432/database")


def test_2_something_that_cannot_be_queued(cli: Cli) -> None:
    says(cli("enqueue", "x" * 201), 2, "1 to 200 characters")


def test_3_no_such_job(cli: Cli) -> None:
    id = uuid4()
    says(cli("show", id), 3, str(id))
    says(cli("watch", id), 3, str(id))


def test_4_nobody_listens_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused for sure
        dsn = f"postgresql://someone:secret@127.0.0.1:{taken.getsockname()[1]}/db"
        refused = invoke("jobs", "--dsn", dsn)
    says(refused, 4, "cannot reach", "someone:***@127.0.0.1")
    assert "secret" not in refused.stderr
    assert refused.stderr.count("127.0.0.1:") == 1, "the address is said once"


def test_4_no_such_database(dsn: str) -> None:
    says(invoke("jobs", "--dsn", dsn.replace("howdah_test_", "no_")), 4, "does not let us in")


def test_4_a_role_that_may_not(databases: Databases, dsn: str) -> None:
    role = f"nobody_{uuid4().hex[:8]}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create role {role} login".encode())
    try:
        other = dsn.replace("postgres@", f"{role}@", 1)
        assert other != dsn
        says(invoke("stats", "--dsn", other), 4, "howdah sql --grants")
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"drop role {role}".encode())


def test_4_a_database_that_takes_no_writes(cli: Cli) -> None:
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"alter database {name} set default_transaction_read_only = on".encode())
    says(cli("enqueue", "mail"), 4, "takes no writes")


def test_5_no_schema(empty_dsn: str) -> None:
    says(invoke("jobs", "--dsn", empty_dsn), 5, "howdah install")


@pytest.mark.parametrize(
    ("number", "compatible_from", "advice"),
    [(0, 0, "run `howdah install`"), (999, 999, "upgrade the howdah package")],
    ids=["older", "newer"],
)
def test_5_another_schema(cli: Cli, number: int, compatible_from: int, advice: str) -> None:
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        connection.execute(
            "update howdah.installed set schema_number = %s, compatible_from = %s",
            (number, compatible_from),
        )
    says(cli("jobs"), 5, advice)


def test_130_ctrl_c_ends_without_a_traceback(cli: Cli, jobs: SyncQueue) -> None:
    id = jobs.enqueue("mail").id
    with started("watch", id, "--json", "--dsn", cli.dsn) as watching:
        assert watching.stdout
        assert watching.stderr
        assert '"pending"' in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 130
        said = watching.stderr.read()
    assert said == f"the job goes on; come back with: howdah watch {id} --after 0\n"


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    program = f"{shlex.quote(sys.executable)} -m howdah sql"
    done = subprocess.run(
        ["/bin/sh", "-c", f"{program} | head -n 1"],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=30,
    )
    assert done.stdout.startswith("-- howdah")
    assert done.stderr == ""
