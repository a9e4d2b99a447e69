"""Fast: selects the tests of `make test-fast`.

A pytest plugin (`-p tests.support.fast`). LEFT_OUT is the only list: the selection and the message
at the end of the run both come from it. tests/surface/test_fast.py compares it with the tests that
pytest collects. On a quiet machine, a test of more than two seconds gets the mark `slow`, and so
does a file of more than ten.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).resolve().parent.parent


class LeftOut(NamedTuple):
    """A folder of tests, or a mark, that the fast run does not select."""

    name: str
    why: str
    is_mark: bool = False

    def __str__(self) -> str:
        return f"tests marked `{self.name}`" if self.is_mark else f"tests/{self.name}"


LEFT_OUT = (
    LeftOut("bench", "the benchmarks' own tests measure real runs"),
    LeftOut("cli", "every command in a process of its own"),
    LeftOut("embedded", "starts and kills PostgreSQL servers"),
    LeftOut("fuzz", "thousands of generated inputs"),
    LeftOut("pgbouncer", "needs PgBouncer"),
    LeftOut("races", "every order of two and three sessions"),
    LeftOut("security", "hostile input for every part"),
    LeftOut("stories", "fleets of workers with faults"),
    LeftOut("top", "the terminal view"),
    LeftOut("web", "the dashboard in a real browser"),
    LeftOut("plan", "tables of a million rows", is_mark=True),
    LeftOut("slow", "long tests, and files with many of them", is_mark=True),
)
FOLDERS = {TESTS / part.name for part in LEFT_OUT if not part.is_mark}
MARKS = [part.name for part in LEFT_OUT if part.is_mark]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Skip the folders before their modules are imported."""
    return True if collection_path in FOLDERS else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests with a mark of the list."""
    selected, deselected = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        marked = any(item.get_closest_marker(mark) for mark in MARKS)
        (deselected if marked else selected).append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = selected


def message() -> Iterable[str]:
    """Return the lines that name the tests that were left out."""
    yield "make test-fast leaves out (`make test` runs everything):"
    width = max(len(str(part)) for part in LEFT_OUT)
    for part in LEFT_OUT:
        yield f"  {part!s:{width}}  {part.why}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the list at the end of the run, after failures and before the sum."""
    terminalreporter.ensure_newline()
    for line in message():
        terminalreporter.write_line(line)
