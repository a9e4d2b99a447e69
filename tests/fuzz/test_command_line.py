"""Every command line gets an exit code and a clear message, never a traceback.

The commands and options are read from the program, so new ones are included. Only commands that run
forever or start another program are left out.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from typing import Any

import click
import pytest
from click.testing import Result
from hypothesis import assume, example, given
from hypothesis import strategies as st

from howdah.cli.commands import howdah
from howdah.cli.exit_codes import ExitCode
from tests.cli.support import environment, invoke
from tests.fuzz.budget import examples

# Commands that run until they are stopped, or that start a server or a program.
LASTING = {"demo", "dev", "bench", "pg", "web", "top"}
LASTING_OPTIONS = {"--wait", "--help", "-h", "--dsn", "--follow", "--watch"}

NOBODY = "postgresql://me:secret@127.0.0.1:1/db"

numbers = st.integers().map(str) | st.sampled_from(
    ["0", "-1", "1e9", "1.5", "nan", "inf", "2147483648", "9" * 400, "0x10", "٣", "१", "1_000"]
)
durations = st.sampled_from(
    ["0s", "1s", "5m", "99999999999999999999d", "-1s", "1", "1.5.5s", "1h30", "s", "366d", "٣s"]
)
instants = st.sampled_from(
    [
        *("2030-01-31T18:00:00Z", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"),
        *("2030-01-31", "now", "2030-13-01T00:00:00Z", "2030-W01-1", "20300131T180000Z"),
    ]
)
others = st.sampled_from(
    [
        *("", "-", "--", "=", "a=b", "=b", "a=", "a={", 'a={"b": [1]}', "{}", "[]", "null", "'"),
        *("00000000-0000-0000-0000-000000000000", "urn:uuid:" + "0" * 32, "x" * 10_000),
        *("pending", "PENDING", "explicit", "os:path", "no_such_module:queue", "a.py:queue", ":"),
        *("\udcff\udcfe", "\x1b[31m", "[bold]", "%s", "${HOME}", "../..", "\u202e", "howdah:Queue"),
    ]
)
values = numbers | durations | instants | others | st.text(max_size=20)


def commands(group: click.Group, before: tuple[str, ...] = ()) -> Generator[tuple[str, ...]]:
    for name, command in sorted(group.commands.items()):
        if name in LASTING:
            continue
        if isinstance(command, click.Group):
            yield from commands(command, (*before, name))
        else:
            yield (*before, name)


COMMANDS = list(commands(howdah))


def options_of(path: tuple[str, ...]) -> list[str]:
    command: Any = howdah
    for name in path:
        command = command.commands[name]
    options = [name for p in command.params if isinstance(p, click.Option) for name in p.opts]
    return [name for name in options if name not in LASTING_OPTIONS] or ["--no-such-option"]


@st.composite
def lines(draw: st.DrawFn) -> list[str]:
    words = draw(st.sampled_from(COMMANDS))
    line = [*words]
    for _ in range(draw(st.integers(0, 5))):
        if draw(st.booleans()):
            line.append(draw(st.sampled_from(options_of(words))))
        if draw(st.integers(0, 3)):
            line.append(draw(values))
    return line


def check(result: Result) -> None:
    assert result.exit_code in set(ExitCode)
    assert "Traceback" not in result.output
    if result.exit_code != 0:
        # with --json, the outcome is on stdout
        text = result.stderr or result.stdout
        assert len(text.split()) > 1, "an exit code without a message"


def harmless(line: list[str]) -> bool:
    """Whether the command ends: click also accepts abbreviations of `--wait` and `--follow`."""
    return not any(word.startswith(("--w", "--f")) for word in line)


@given(lines())
@example(["enqueue", "mail", "--delay", "99999999999999999999d"])
@example(["enqueue", "mail", "--run-at", "9999-12-31T23:59:59-23:59"])
@example(["enqueue", "mail", "--run-at", "0001-01-01T00:00:00+23:59"])
@example(["enqueue", "\udcff"])
@example(["enqueue", "mail", "a=\udcff"])
@example(["jobs", "--type", "\udcff"])
@example(["cancel", "00000000-0000-0000-0000-000000000000", "--reason", "\udcff"])
@example(["recover", "--stale-after", "99999999d"])
@example(["worker", "os:path"])
@example(["sql", "--grants", "--producer", "\udcff"])
@examples(250)
def test_any_command_line_gets_an_exit_code_and_a_message(shared_dsn: str, line: list[str]) -> None:
    assume(harmless(line))
    check(invoke("--dsn", shared_dsn, *line))


@given(st.lists(values, max_size=4))
@examples(100)
def test_any_text_instead_of_a_command_gets_a_message(line: list[str]) -> None:
    check(invoke(*line))


@given(st.sampled_from([words for words in COMMANDS if "completion" not in words]), values)
@examples(60)
def test_any_dsn_is_refused_with_a_message(words: tuple[str, ...], given: str) -> None:
    assume(given.strip() and not given.startswith("-"))
    line = [*words, *{"enqueue": ["mail"], "worker": ["os:path"]}.get(words[0], [])]
    for dsn in (given, f"postgresql://{given}@127.0.0.1:1/x", f"postgresql://127.0.0.1:1/{given}"):
        result = invoke(*line, "--dsn", dsn)
        check(result)


@pytest.mark.parametrize(
    "words",
    [
        [b"jobs", b"--type", b"\xff"],
        [b"\xff"],
        [b"enqueue", b"mail", b"--data", b'{"a": "\xff"}'],
        [b"worker", b"\xff:\xfe"],
    ],
)
@pytest.mark.parametrize("language", ["C.UTF-8", "POSIX"])
def test_arguments_that_are_not_valid_text_get_a_message(
    shared_dsn: str, words: list[bytes], language: str
) -> None:
    """A real process: a shell can pass any bytes, in any locale."""
    done = subprocess.run(
        [sys.executable.encode(), b"-m", b"howdah", b"--dsn", shared_dsn.encode(), *words],
        capture_output=True,
        env=environment(LC_ALL=language, PYTHONCOERCECLOCALE="0"),
        timeout=60,
    )
    assert done.returncode in set(ExitCode)
    assert done.returncode != 0
    assert b"Traceback" not in done.stderr
    assert len(done.stderr.split()) > 1


def test_the_commands_are_found() -> None:
    assert ("enqueue",) in COMMANDS
    assert len(COMMANDS) > 8
    assert "--priority" in options_of(("enqueue",))
