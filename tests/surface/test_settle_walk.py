"""ARCHITECTURE's list of the files on a job's way through settle is true, and stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_VISITS = 18
MAX_RETURNS = 6


def steps(architecture: str) -> list[tuple[str, str]]:
    """Return the file and the function of each step."""
    _, section = architecture.split("## The way of one job through settle\n", 1)
    section, _, _ = section.partition("\n## ")
    return re.findall(r"^\d+\. `([^`]+)` `([^`]+)`:", section, re.MULTILINE)


def visits_and_returns(files: list[str]) -> tuple[int, int]:
    """Count visits, and how many of them lead back to a file that was left before."""
    visits = [file for n, file in enumerate(files) if n == 0 or files[n - 1] != file]
    return len(visits), len(visits) - len(set(visits))


WALK = steps((ROOT / "ARCHITECTURE.md").read_text())


def test_the_path_has_few_steps_and_returns() -> None:
    visits, returns = visits_and_returns([file for file, _ in WALK])
    assert 10 < visits <= MAX_VISITS
    assert returns <= MAX_RETURNS
    assert f"{visits} visits, {returns} returns" in (ROOT / "ARCHITECTURE.md").read_text()


@pytest.mark.parametrize(("file", "function"), WALK)
def test_every_step_exists(file: str, function: str) -> None:
    text = (ROOT / "src" / "howdah" / file).read_text()
    defined = rf"def {function}\(" if file.endswith(".py") else rf"function howdah\.{function}\("
    assert re.search(defined, text), f"{file} defines no {function}"


def test_returns_are_counted() -> None:
    assert visits_and_returns(["a", "b", "b", "a", "c", "a"]) == (5, 2)
