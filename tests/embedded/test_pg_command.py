"""howdah pg: the commands of the embedded server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from howdah import embedded
from howdah.cli.pg import pg
from howdah.embedded import join

from .support import UserProcess, ask, running, until_stopped


def howdah_pg(*arguments: str) -> Result:
    return CliRunner().invoke(pg, arguments, catch_exceptions=False)


def test_start_keeps_the_server_up_and_stop_ends_it(home: Path) -> None:
    started = howdah_pg("start")
    assert started.exit_code == 0
    assert ask(started.output.strip(), "select current_database()") == "howdah"
    assert running(home).kept
    assert running(home).users == ()

    assert howdah_pg("stop").output == "stopped\n"
    assert howdah_pg("stop").output == "not running\n"
    until_stopped(home)


def test_stop_says_how_many_processes_used_it(home: Path) -> None:
    with UserProcess(home) as user:
        user.line()
        assert howdah_pg("stop").output == "stopped, while 1 process used it\n"


def test_status_prints_text(home: Path) -> None:
    stopped = howdah_pg("status")
    assert stopped.exit_code == 3
    assert "server    stopped" in stopped.output
    with join(), UserProcess(home) as user:
        user.line()
        result = howdah_pg("status")
    assert result.exit_code == 0
    assert "server    running, until the last process that uses it has ended" in result.output
    assert "users     2 processes" in result.output
    assert f"data      {home / 'pg'}" in result.output


def test_status_prints_json(home: Path) -> None:
    stopped = howdah_pg("status", "--json")
    assert stopped.exit_code == 3
    assert json.loads(stopped.output)["running"] is False
    with join() as server:
        result = howdah_pg("status", "--json")
        fields = json.loads(result.output)
        assert result.exit_code == 0
        assert fields["running"] is True
        assert fields["kept"] is False
        assert fields["pid"] == running(home).pid
        assert fields["users"] == [os.getpid()]
        assert fields["dsn"] == server.dsn
        assert fields["version"].startswith(f"{(home / 'pg' / 'PG_VERSION').read_text().strip()}.")


def test_dsn_starts_no_server_and_reports_that_on_stderr(home: Path) -> None:
    result = howdah_pg("dsn")
    assert result.exit_code == 0
    assert "not running" in result.stderr
    assert not embedded.status(home).running
    with join() as server:
        result = howdah_pg("dsn")
        assert result.stdout == f"{server.dsn}\n" == result.output


def test_psql_passes_arguments_and_exit_code_on(home: Path) -> None:
    script = "from howdah.cli.pg import pg; pg()"

    def psql(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", script, "psql", "--", *arguments],
            capture_output=True,
            text=True,
        )

    assert psql("-Atc", "select current_database()").stdout == "howdah\n"
    assert psql("-v", "ON_ERROR_STOP=1", "-c", "select 1/0").returncode == 1
    assert psql("-c", "\\q").returncode == 0
    until_stopped(home)


def test_without_psql_the_command_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing() -> None:
        return None

    monkeypatch.setattr(embedded, "find_psql", find_nothing)
    refused = howdah_pg("psql")
    assert refused.exit_code == 1
    assert "psql was not found" in refused.output


@pytest.mark.parametrize("command", ["start", "stop", "status", "dsn", "psql"])
def test_every_command_has_a_help_text(command: str) -> None:
    assert command in howdah_pg("--help").output
    assert len(howdah_pg(command, "--help").output.splitlines()) >= 5
