"""howdah doctor: an exit code that monitoring understands, and advice for people."""

from __future__ import annotations

import json

import psycopg
import pytest

from howdah.cli.doctor import exit_code
from howdah.client.sync import SyncQueue
from howdah.observe import Level
from tests.cli.support import Cli


def test_a_fresh_queue_is_fine(cli: Cli) -> None:
    said = cli.ok("doctor")
    assert said.splitlines()
    assert all(line.startswith("fine") for line in said.splitlines()), said


def test_jobs_that_nobody_takes_are_sick_and_the_advice_stands_below(
    cli: Cli, jobs: SyncQueue
) -> None:
    jobs.enqueue("mail")
    critical = cli("doctor")
    assert critical.exit_code == 2
    first, second, *_ = critical.stdout.splitlines()
    assert first.startswith("critical  workers")
    assert "Start a worker" in second
    jobs.pause("mail")
    assert cli("doctor").exit_code == 0


def test_a_warning_is_1(cli: Cli) -> None:
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        connection.execute("update howdah.installed set fingerprint = 'of another version'")
    warned = cli("doctor", "--json")
    assert warned.exit_code == 1
    told = json.loads(warned.stdout)
    assert told["level"] == "warning"
    worst = told["checks"][0]
    assert (worst["name"], worst["level"]) == ("schema", "warning")
    assert "howdah install" in worst["advice"]
    assert {check["level"] for check in told["checks"][1:]} == {"fine"}


@pytest.mark.parametrize(
    ("level", "code"),
    [(Level.FINE, 0), (Level.UNKNOWN, 0), (Level.WARNING, 1), (Level.CRITICAL, 2)],
)
def test_the_exit_code_is_a_monitoring_plugins(level: Level, code: int) -> None:
    assert exit_code(level) == code
