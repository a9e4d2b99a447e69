"""Every variable HOWDAH_* that the pages name is read by the code, and the other way round."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.processes import ROOT
from tests.surface.pages import files, pages, text

VARIABLE = re.compile(r"(?<![A-Z_])HOWDAH_[A-Z]+(?:_[A-Z]+)*(?![A-Z_*])")
READ_BY_CONTRIBUTORS = ("tests", "tools", "bench", "Makefile", ".github")
FOR_USERS = Path("docs/guides/production.md")
FOR_CONTRIBUTORS = Path("CONTRIBUTING.md")

# howdah sets it for the processes that it starts. Users do not set it.
INTERNAL = {"HOWDAH_DEMO"}


def variables(*folders: str, without: str = "/") -> set[str]:
    """Return the variables that the files of these folders name."""
    return {
        name
        for path in files()
        if path.parts[0] in folders
        and path.suffix in (".py", ".yml", "")
        and not path.is_relative_to(without)
        for name in VARIABLE.findall((ROOT / path).read_text(encoding="utf-8"))
    }


def table(page: Path) -> set[str]:
    """Return the variables that the table of a page has a row for."""
    return set(re.findall(r"^\| `(HOWDAH_[A-Z_]+)`", text(page), re.MULTILINE))


def test_the_guide_lists_the_variables_of_the_package_and_no_others() -> None:
    assert table(FOR_USERS) == variables("src") - INTERNAL


def test_the_variables_for_contributors_are_listed_and_no_others() -> None:
    of_users = variables("src")
    read = variables(*READ_BY_CONTRIBUTORS, without="tests/surface") - of_users
    assert table(FOR_CONTRIBUTORS) == read


def test_every_variable_that_a_page_names_exists() -> None:
    known = variables("src", *READ_BY_CONTRIBUTORS, without="tests/surface")
    for page in pages():
        assert set(VARIABLE.findall(text(page))) <= known, page
