"""Every file and folder that the pages for contributors name in backticks exists."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from tests.surface.pages import by_name, files, pages, spans

CHECKED = [
    page
    for page in pages()
    if page.parts[0] in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "docs")
]
KIND = re.compile(r"[\w*]\.(py|sql|md|toml|txt|yml|yaml|json|svg|mjs)$")
PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)*/?")

# Files of a user, and of the examples that the pages show.
OF_A_USER = {
    *("app.py", "conftest.py", "msgspec.py", "json.py", "howdah.sql", "jobs.py", "views.py"),
    "asgi.py",
    *("howdah_1.sql", "pyproject.toml", "driver.py"),
}
# Names with a slash that are no paths of this tree.
NO_PATH = {
    "dist/",  # made by `make release`
    "pg/postgresql.conf",  # in the home of the embedded server
    "internal/maintenance/job_rescuer.go",  # of River
}


def named(page: Path) -> list[str]:
    """Return the paths that a page names: what has a slash, or ends as a file does."""
    return [
        span
        for span in spans(page)
        if PATH.fullmatch(span)
        and ("/" in span or KIND.search(span))
        and span not in OF_A_USER | NO_PATH
    ]


def is_there(name: str) -> bool:
    """Say whether a file or folder of the tree has this name, or ends with it."""
    wanted = name.rstrip("/")
    if "*" in wanted:
        return any(fnmatch(name, wanted) for name in endings())
    return wanted in endings()


@cache
def endings() -> set[str]:
    """Return every file and folder, as its whole path and as each end of it."""
    paths = {*files(), *(parent for path in files() for parent in path.parents)}
    return {"/".join(path.parts[n:]) for path in paths for n in range(len(path.parts))}


def test_the_pages_name_paths() -> None:
    assert sum(len(named(page)) for page in CHECKED) > 60


@pytest.mark.parametrize("page", CHECKED, ids=by_name)
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    assert [name for name in named(page) if not is_there(name)] == []


@pytest.mark.parametrize("word", ["enqueue", "claim", "run", "settle", "upkeep", "observe"])
def test_each_word_of_the_path_names_sql_python_tests_and_a_guide(word: str) -> None:
    names = {str(path) for path in files()}
    for pattern in (
        f"src/howdah/sql/??_{word}/*.sql",
        f"src/howdah/{word}*",
        f"tests/{word}/test_*.py",
        f"docs/guides/{word}.md",
    ):
        assert any(fnmatch(name, pattern) for name in names), pattern
