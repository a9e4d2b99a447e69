"""The pages of the project, and the names that they write as code."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.processes import ROOT

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")


class Block(NamedTuple):
    """A fenced block of code: its language and its text."""

    language: str
    text: str


@cache
def files() -> tuple[Path, ...]:
    """Return every file of the tree that is not ignored, relative to its root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return tuple(sorted({Path(line) for line in listed.stdout.splitlines() if exists(line)}))


def exists(name: str) -> bool:
    return (ROOT / name).exists()


@cache
def pages() -> tuple[Path, ...]:
    """Return every page that describes the present state.

    The changelog names removed parts too, and records of benchmarks are never changed.
    """
    return tuple(
        path
        for path in files()
        if path.suffix == ".md"
        and path.name != "CHANGELOG.md"
        and not path.is_relative_to("bench/records")
    )


@cache
def text(page: Path) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [Block(*parts) for parts in FENCE.findall(text(page))]


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return FENCE.sub("", text(page))


def spans(page: Path) -> list[str]:
    """Return the code spans of a page, outside of blocks."""
    return SPAN.findall(prose(page))


def by_name(page: Path) -> str:
    """Name a page in the list of tests."""
    return str(page)
