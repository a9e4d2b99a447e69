"""tests/README.md names every folder of tests, every mark, and only files that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
README = (TESTS / "README.md").read_text(encoding="utf-8")


def table(heading: str) -> list[str]:
    """Return the first cell of each row of the table under a heading, without its backquotes."""
    section = README.split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")]
    return [cell.strip("`") for cell in cells[2:]]


def test_every_folder_has_a_row() -> None:
    folders = {path.parent.relative_to(TESTS).parts[0] for path in TESTS.glob("*/*.py")}
    rows = table("Where does a new test go?")
    assert sorted(rows) == sorted(folders)


def test_every_mark_has_a_row() -> None:
    settings = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    marks = {
        mark.partition(":")[0] for mark in settings["tool"]["pytest"]["ini_options"]["markers"]
    }
    rows = table("What do the marks mean?")
    assert {row for row in rows if "(" not in row} == marks


def test_every_file_that_it_names_exists() -> None:
    for name in re.findall(r"`([\w/]+\.(?:py|sql))`", README):
        assert (
            list(TESTS.glob(name))
            or list(TESTS.parent.rglob(f"src/**/{name}"))
            or list(TESTS.glob(f"*/{name}"))
        ), f"tests/README.md names {name}, which does not exist"
