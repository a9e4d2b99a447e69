"""The pages name only commands and options that exist, and the reference names all of them."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import click
import pytest

from howdah.cli.commands import howdah
from tests.support.processes import ROOT
from tests.surface.pages import blocks, by_name, pages, spans, text

REFERENCE = Path("docs/reference/cli.md")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
MODULE = re.compile(r"python -m (\w[\w.]*)")
CALL = re.compile(r"^(?:[A-Z_]+=\S* )*howdah(?: |$)(.*)")

# Options of other programs that pages name by themselves, each with its program.
FOREIGN = {
    "--single-transaction": "psql",
    "--require-hashes": "pip",
    "--no-build-isolation": "pip",
    "--check": "tools/write_states.py and its like",
}


def calls(page: Path) -> list[str]:
    """Return the arguments after `howdah` in spans and shell blocks of a page."""
    lines = [
        line.removeprefix("$ ")
        for block in blocks(page)
        if block.language in ("", "sh", "bash", "console")
        for line in block.text.splitlines()
    ]
    return [match[1] for line in [*lines, *spans(page)] if (match := CALL.match(line))]


def words(call: str) -> list[str]:
    """Split a command line, without its comment and its pipe."""
    lexer = shlex.shlex(call, posix=True, punctuation_chars="|>;&")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    typed: list[str] = []
    for word in lexer:
        if word[0] in "|>;&":
            break
        typed.append(word)
    return typed


def command_of(typed: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command and its arguments."""
    command: click.Command = howdah
    rest = typed
    while isinstance(command, click.Group) and rest:
        if rest[0].startswith("-"):
            rest = rest[2:] if rest[0] == "--dsn" else rest[1:]
            continue
        if not re.fullmatch(r"[a-z]+", rest[0]):
            break  # a placeholder, as in `howdah COMMAND`
        assert rest[0] in command.commands, f"no command {rest[0]!r}"
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


def options(command: click.Command) -> set[str]:
    """Return the options of a command, with those of every command."""
    own = {
        name
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in [*parameter.opts, *parameter.secondary_opts]
    }
    return own | {"--help", "--version", "--dsn"} if command is howdah else own | {"--help"}


def every_command(group: click.Group = howdah) -> list[click.Command]:
    below = [
        inner
        for command in group.commands.values()
        for inner in (every_command(command) if isinstance(command, click.Group) else [])
    ]
    return [*group.commands.values(), *below]


EVERY_OPTION = {name for command in [howdah, *every_command()] for name in options(command)}


def test_the_pages_show_commands() -> None:
    assert sum(len(calls(page)) for page in pages()) > 80


@pytest.mark.parametrize("page", pages(), ids=by_name)
def test_every_command_and_option_that_a_page_types_exists(page: Path) -> None:
    for call in calls(page):
        typed = words(call)
        command, rest = command_of(typed)
        ours = rest[: rest.index("--")] if "--" in rest else rest
        used = {word.partition("=")[0] for word in ours if word.startswith("--")}
        assert used <= options(command), f"howdah {call}: {used - options(command)}"


@pytest.mark.parametrize(
    "page", [page for page in pages() if page.parts[0] not in ("bench", "tests")], ids=by_name
)
def test_every_option_that_a_page_names_exists(page: Path) -> None:
    named = {
        option for span in spans(page) if span.startswith("--") for option in OPTION.findall(span)
    }
    assert named - EVERY_OPTION - set(FOREIGN) == set()


def sections() -> dict[str, str]:
    """Return the text about each command in the reference."""
    parts = re.split(r"^## howdah (\w+)$", text(REFERENCE), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_reference_has_a_section_for_each_command_and_no_other() -> None:
    assert set(sections()) == set(howdah.commands)


@pytest.mark.parametrize("name", sorted(howdah.commands))
def test_the_reference_names_the_options_of_a_command_and_no_others(name: str) -> None:
    command = howdah.commands[name]
    commands = [command, *(every_command(command) if isinstance(command, click.Group) else [])]
    known = {option for inner in commands for option in options(inner)}
    listed = set(re.findall(r"^\| `(--[a-z-]+)", sections()[name], flags=re.MULTILINE))
    assert listed <= known
    assert known - {"--help", "--dsn", "--json"} - set(OPTION.findall(sections()[name])) == set()


@pytest.mark.parametrize("name", sorted(howdah.commands))
def test_the_reference_says_the_default_of_each_option(name: str) -> None:
    for parameter in howdah.commands[name].params:
        if isinstance(parameter.default, (int, str)) and parameter.default:
            row = re.search(rf"^\| `{parameter.opts[0]}\b.*", sections()[name], re.MULTILINE)
            assert row, parameter.opts[0]
            assert str(parameter.default) in row[0], parameter.opts[0]


def test_the_reference_names_every_subcommand() -> None:
    for name, command in howdah.commands.items():
        if isinstance(command, click.Group):
            for inner in command.commands:
                assert f"`{inner}`" in sections()[name], f"howdah {name} {inner}"


TARGETS = set(
    re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
)


@pytest.mark.parametrize("page", pages(), ids=by_name)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    code = [*spans(page), *(line for block in blocks(page) for line in block.text.splitlines())]
    typed = (
        re.match(r"(?:[A-Z_]+=\S+ )*make ((?: ?[A-Za-z][\w-]*(?![\w=]))+)", line) for line in code
    )
    named = {target for match in typed if match for target in match[1].split()}
    assert named - TARGETS == set()


@pytest.mark.parametrize("page", pages(), ids=by_name)
def test_every_module_that_a_page_runs_exists(page: Path) -> None:
    modules = MODULE.findall(text(page))
    assert [name for name in modules if importlib.util.find_spec(name) is None] == []


def test_the_pages_name_the_port_of_the_dashboard() -> None:
    (port,) = (option for option in howdah.commands["web"].params if option.name == "port")
    named = {number for page in pages() for number in re.findall(r"localhost:(\d+)", text(page))}
    assert named == {str(port.default)}
