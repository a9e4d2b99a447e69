"""The files of the tree are laid out as .editorconfig says, and ruff says the same."""

from __future__ import annotations

import configparser
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.support.processes import ROOT

BINARY = {".png"}


def config() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    text = (ROOT / ".editorconfig").read_text()
    parser.read_string("[top]\n" + text)
    return parser


def tracked() -> list[Path]:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nobody knows which files belong to the tree")
    done = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    paths = (ROOT / name for name in done.stdout.split("\0") if name)
    return [path for path in paths if path.suffix not in BINARY and path.is_file()]


def test_the_length_of_a_python_line_is_ruffs() -> None:
    ruff = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]
    assert config()["*.py"]["max_line_length"] == str(ruff["line-length"])


def test_every_file_of_the_tree_follows_the_rules_for_all_files() -> None:
    rules = config()["*"]
    assert rules["charset"] == "utf-8"
    assert rules["end_of_line"] == "lf"
    assert rules["insert_final_newline"] == rules["trim_trailing_whitespace"] == "true"
    assert rules["indent_style"] == "space"
    assert config()["Makefile"]["indent_style"] == "tab"
    broken: list[str] = []
    for path in tracked():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_bytes().decode()
        if text and not text.endswith("\n"):
            broken.append(f"{name} does not end with a newline")
        for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
            if line != line.rstrip():
                broken.append(f"{name}:{number} ends with white space")
            if line.startswith("\t") and path.name != "Makefile":
                broken.append(f"{name}:{number} is indented with a tab")
    assert not broken
