"""Every file that the pages for contributors, a docstring or a comment names exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

from tests.surface.pages import by_name, files, pages, spans, text

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
# Names of files in docstrings and comments, such as `claim.py` or `sql/40_claim/claim.sql`.
IN_REMARKS = re.compile(r"(?<![\w/.*<>$-])\w[\w-]*(?:/\w[\w-]*)*\.(?:py|sql|md|mjs|js)\b(?!\()")
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


def remarks(path: Path) -> Iterator[str]:
    """Yield the docstrings and comments of a file in Python, or the comments of one in SQL."""
    source = text(path)
    yield from re.findall(
        r"--.*" if path.suffix == ".sql" else r"(?:^| )# .*", source, re.MULTILINE
    )
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                yield ast.get_docstring(node) or ""


@pytest.mark.parametrize("folder", ["src", "bench", "tests", "tools"])
def test_every_file_that_a_docstring_or_a_comment_names_exists(folder: str) -> None:
    named = [
        (str(path), name)
        for path in files()
        if path.parts[0] == folder and path.suffix in (".py", ".sql")
        for remark in remarks(path)
        for name in IN_REMARKS.findall(remark)
        if name not in OF_A_USER
    ]
    assert len(named) > 5
    assert [(path, name) for path, name in named if not is_there(name)] == []


@pytest.mark.parametrize("word", ["enqueue", "claim", "run", "settle", "upkeep", "observe"])
def test_each_word_of_the_path_names_sql_python_tests_a_benchmark_and_a_guide(word: str) -> None:
    names = {str(path) for path in files()}
    for pattern in (
        f"src/howdah/sql/??_{word}/*.sql",
        f"src/howdah/{word}*",
        f"tests/{word}/test_*.py",
        f"docs/guides/{word}.md",
        f"bench/*{word}*.py",
    ):
        assert any(fnmatch(name, pattern) for name in names), pattern
