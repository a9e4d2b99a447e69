"""An error of the user is one line on stderr and an exit code, never a traceback."""

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


def check_error(result: Result, code: int, *texts: str) -> None:
    """Check that a command printed one line of error to stderr, and ended with this code."""
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert len(result.stderr.splitlines()) == 1
    for text in texts:
        assert text in result.stderr


def test_2_an_invalid_dsn() -> None:
    check_error(
        invoke("jobs", "--dsn", "nonsense"), 2, "postgresql://user:password@host:5432/database"
    )


def test_2_a_job_that_cannot_be_enqueued(cli: Cli) -> None:
    check_error(cli("enqueue", "x" * 201), 2, "1 to 200 characters")


def test_3_no_such_job(cli: Cli) -> None:
    id = uuid4()
    check_error(cli("show", id), 3, str(id))
    check_error(cli("watch", id), 3, str(id))


def test_4_an_unreachable_server() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # bound but not listening, so it is refused
        dsn = f"postgresql://someone:secret@127.0.0.1:{bound.getsockname()[1]}/db"
        refused = invoke("jobs", "--dsn", dsn)
    check_error(refused, 4, "cannot reach", "someone:***@127.0.0.1", "Check the address")
    assert "secret" not in refused.stderr
    assert refused.stderr.count("127.0.0.1:") == 1, "the address is printed once"


def test_4_no_such_database(dsn: str) -> None:
    check_error(
        invoke("jobs", "--dsn", dsn.replace("howdah_test_", "no_")), 4, "refused the connection"
    )


def test_4_a_role_without_the_privilege(databases: Databases, dsn: str) -> None:
    role = f"unprivileged_{uuid4().hex[:8]}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create role {role} login".encode())
    try:
        other = dsn.replace("postgres@", f"{role}@", 1)
        assert other != dsn
        check_error(invoke("stats", "--dsn", other), 4, "howdah sql --grants")
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f"drop role {role}".encode())


def test_4_a_database_that_takes_no_writes(cli: Cli) -> None:
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"alter database {name} set default_transaction_read_only = on".encode())
    check_error(cli("enqueue", "mail"), 4, "takes no writes")


def test_5_no_schema(empty_dsn: str) -> None:
    check_error(invoke("jobs", "--dsn", empty_dsn), 5, "howdah install")


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
    check_error(cli("jobs"), 5, advice)


def test_130_ctrl_c_ends_without_a_traceback(cli: Cli, jobs: SyncQueue) -> None:
    id = jobs.enqueue("mail").id
    with started("watch", id, "--json", "--dsn", cli.dsn) as watching:
        assert watching.stdout
        assert watching.stderr
        assert '"pending"' in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(20) == 130
        printed = watching.stderr.read()
    assert printed == f"the job goes on; to continue: howdah watch {id} --after 0\n"


def test_a_pipe_that_is_closed_early_is_no_error() -> None:
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
