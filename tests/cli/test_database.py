"""howdah stats, install, sql, completion: the database as a whole, and the shell."""

from __future__ import annotations

import os
import subprocess
import sys

import psycopg
import pytest

from howdah import Queue
from howdah.client.sync import SyncQueue
from howdah.store.engine_files import SCHEMA_NUMBER
from tests.cli.support import Cli, completed, failed, invoke, started


def test_stats_counts_by_type_and_state(cli: Cli, jobs: SyncQueue) -> None:
    assert cli.ok("stats") == "no jobs yet\n\nno workers\n"
    for _ in range(3):
        jobs.enqueue("mail")
    completed(jobs, "report")
    failed(jobs, "report")
    assert cli.json("stats") == {
        "jobs": {"mail": {"pending": 3}, "report": {"completed": 1, "failed": 1}},
        "queues": {"mail": "default", "report": "default"},
        "workers": [],
    }
    table = [line.split() for line in cli.ok("stats").splitlines()]
    assert table[0] == [
        *("TYPE", "PENDING", "CLAIMED", "RUNNING", "COMPLETED", "FAILED", "CANCELLED")
    ]
    assert table[1:4] == [
        ["mail", "3", *"·····"],
        ["report", *"···", "1", "1", "·"],
        ["all", "3", "·", "·", "1", "1", "·"],
    ]


async def test_stats_lists_the_workers(queue: Queue, dsn: str) -> None:
    @queue.job
    async def mail() -> None: ...

    async with queue.worker(concurrency=7) as worker:
        with started("stats", "--dsn", dsn) as process:
            printed, _ = process.communicate(timeout=30)
    assert f"{worker.id}  alive      0      7" in printed


def test_install_reports_whether_it_changed_the_schema(empty_dsn: str) -> None:
    first = invoke("install", "--dsn", empty_dsn)
    assert (first.exit_code, first.stdout.split()[0]) == (0, "installed")
    assert invoke("install", "--dsn", empty_dsn).stdout.startswith("nothing to do")
    assert invoke("jobs", "--dsn", empty_dsn).exit_code == 0
    assert '"changed": false' in invoke("install", "--json", "--dsn", empty_dsn).stdout


def test_sql_prints_an_engine_that_works(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn) as connection:
        connection.execute(invoke("sql").stdout.encode())
    assert invoke("install", "--dsn", empty_dsn).stdout.startswith("nothing to do")
    assert invoke("enqueue", "mail", "--dsn", empty_dsn).exit_code == 0


def test_sql_grants_let_a_producer_enqueue_and_no_more(cli: Cli) -> None:
    roles = {
        kind: f'{kind}s "{os.urandom(3).hex()}"' for kind in ("producer", "worker", "observer")
    }
    options = [word for kind, name in roles.items() for word in (f"--{kind}", name)]
    grants = invoke("sql", "--grants", *options).stdout
    quoted = {kind: '"' + name.replace('"', '""') + '"' for kind, name in roles.items()}
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        try:
            for name in quoted.values():
                connection.execute(f"create role {name}".encode())
            connection.execute(grants.encode())
            connection.execute(f"set role {quoted['producer']}".encode())
            connection.execute("select howdah.enqueue('mail')")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("select * from howdah.jobs")
        finally:
            connection.execute("reset role")
            for name in quoted.values():
                connection.execute(f"drop owned by {name}".encode())
                connection.execute(f"drop role {name}".encode())
    assert invoke("sql", "--grants").stdout.count("howdah_producer") > 1


def test_sql_refuses_roles_without_grants_and_invalid_names() -> None:
    assert invoke("sql", "--producer", "web").exit_code == 2
    assert invoke("sql", "--grants", "--from", "1").exit_code == 2
    assert invoke("sql", "--from", "-1").exit_code == 2
    newer = invoke("sql", "--from", str(SCHEMA_NUMBER + 1))
    assert newer.exit_code == 2
    assert "upgrade the howdah package" in newer.stderr
    assert invoke("sql", "--grants", "--producer", "").exit_code == 2
    assert invoke("sql", "--grants", "--producer", "x" * 64).exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    assert "_HOWDAH_COMPLETE" in invoke("completion", shell).stdout


def test_completion_completes_commands_and_states() -> None:
    def complete(*words: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "howdah"],
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "_HOWDAH_COMPLETE": "bash_complete",
                "COMP_WORDS": " ".join(words),
                "COMP_CWORD": str(len(words) - 1),
            },
            timeout=30,
        )
        return [line.partition(",")[2] for line in done.stdout.splitlines()]

    assert complete("howdah", "re") == ["requeue", "resume", "recover"]
    assert complete("howdah", "jobs", "--status", "c") == ["claimed", "completed", "cancelled"]
