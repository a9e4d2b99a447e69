"""howdah without a command: the help, the list of commands, and their documentation."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

import howdah as package
from howdah.cli.commands import howdah
from tests.cli.support import Cli, invoke, run

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"
PROMISED = {
    *(
        "demo",
        "worker",
        "enqueue",
        "jobs",
        "show",
        "watch",
        "cancel",
        "requeue",
        "signal",
        "recover",
    ),
    *("stats", "install", "sql", "pg", "bench", "completion"),
    *("why", "doctor", "metrics", "pause", "resume", "keys", "limits", "top", "web", "dev"),
    "schedules",
}


def test_without_a_command_it_prints_the_help() -> None:
    result = invoke()
    assert result.exit_code == 0
    assert result.stdout == invoke("--help").stdout
    for name in PROMISED:
        assert re.search(rf"^  {name} ", result.stdout, re.MULTILINE)
    assert "Exit codes:" in result.stdout


def test_every_promised_command_is_there_and_no_other() -> None:
    assert set(howdah.commands) == PROMISED


def test_python_m_howdah_is_howdah() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"howdah {package.__version__}\n")


def test_an_unknown_command_is_wrong_usage() -> None:
    wrong = invoke("jbos")
    assert wrong.exit_code == 2
    assert "No such command 'jbos'" in wrong.stderr


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_help_of_a_command_says_what_it_does(name: str) -> None:
    help = invoke(name, "--help")
    assert help.exit_code == 0
    assert help.stdout.startswith(f"Usage: howdah {name}")
    assert len(help.stdout.splitlines()) >= 5


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_the_reference_describes_every_command_and_option(name: str) -> None:
    text = REFERENCE.read_text()
    section = re.search(rf"^## howdah {name}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert section, f"no section about {name}"
    for parameter in howdah.commands[name].params:
        if isinstance(parameter, click.Option) and parameter.name not in ("dsn", "as_json"):
            assert f"`{parameter.opts[0]}" in section.group(1), parameter.opts[0]


@pytest.mark.parametrize("name", sorted(PROMISED - {"pg", "demo", "completion"}))
def test_every_command_on_a_database_has_the_option_dsn(name: str) -> None:
    assert "--dsn" in invoke(name, "--help").stdout


def test_dsn_is_accepted_before_the_command_too(cli: Cli) -> None:
    id = cli.ok("enqueue", "mail").strip()
    assert id in invoke("--dsn", cli.dsn, "jobs").stdout
