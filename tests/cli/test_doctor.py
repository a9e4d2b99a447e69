"""howdah doctor: an exit code for monitoring, and advice for people."""

from __future__ import annotations

import json

import psycopg
import pytest

from howdah.cli.doctor import exit_code
from howdah.client.sync import SyncQueue
from howdah.observe import Level
from tests.cli.support import Cli


def test_a_fresh_queue_is_fine(cli: Cli) -> None:
    printed = cli.ok("doctor")
    assert printed.splitlines()
    assert all(line.startswith("fine") for line in printed.splitlines()), printed


def test_jobs_without_a_worker_are_critical_and_advice_follows(cli: Cli, jobs: SyncQueue) -> None:
    jobs.enqueue("mail")
    critical = cli("doctor")
    assert critical.exit_code == 2
    first, second, *_ = critical.stdout.splitlines()
    assert first.startswith("critical  workers")
    assert "Start a worker" in second
    jobs.pause("mail")
    assert cli("doctor").exit_code == 0


def test_a_warning_has_exit_code_1(cli: Cli) -> None:
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        connection.execute("update howdah.installed set fingerprint = 'of another version'")
    warned = cli("doctor", "--json")
    assert warned.exit_code == 1
    answer = json.loads(warned.stdout)
    assert answer["level"] == "warning"
    worst = answer["checks"][0]
    assert (worst["name"], worst["level"]) == ("schema", "warning")
    assert "howdah install" in worst["advice"]
    assert {check["level"] for check in answer["checks"][1:]} == {"fine"}


@pytest.mark.parametrize(
    ("level", "code"),
    [(Level.FINE, 0), (Level.UNKNOWN, 0), (Level.WARNING, 1), (Level.CRITICAL, 2)],
)
def test_the_exit_code_is_that_of_a_monitoring_plugin(level: Level, code: int) -> None:
    assert exit_code(level) == code
