"""The public surface: what `howdah.__all__` says is there, and every module speaks."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import howdah
from howdah import errors

PACKAGE = Path(howdah.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py"))

DRAWN = r" {4}| *[├└│]"  # a picture or a sample in a docstring is not prose
FIRST_PROGRAM = 14  # lines: the package itself shows one whole program

# The names that docs, tests and tools rely on.
FIXED = {
    "Cancel",
    "Fail",
    "JobCancelled",
    "JobContext",
    "JobFailed",
    "ResultDoesNotFit",
    "Priority",
    "Queue",
    "Retry",
    "Snooze",
    "SyncQueue",
}


def test_the_public_names_are_complete() -> None:
    defined = {
        name
        for name, value in vars(howdah).items()
        if not name.startswith("_") and not inspect.ismodule(value) and name != "annotations"
    }
    assert set(howdah.__all__) == defined | {"__version__"}
    assert len(howdah.__all__) == len(set(howdah.__all__))


def test_the_names_are_sorted() -> None:
    assert howdah.__all__ == sorted(howdah.__all__)


def test_the_fixed_names_are_there() -> None:
    assert set(howdah.__all__) >= FIXED


QUEUE = """
    job enqueue enqueue_many worker claim complete fail recover_stale_jobs
    install open close handle jobs counts cancel requeue
"""
JOB_TYPE = "enqueue enqueue_many draft options"
HANDLE = "result events cancel job status requeue"


@pytest.mark.parametrize(
    ("cls", "verbs"),
    [
        (howdah.Queue, QUEUE),
        (howdah.SyncQueue, QUEUE),
        (howdah.JobType, JOB_TYPE),
        (howdah.SyncJobType, JOB_TYPE),
        (howdah.Handle, HANDLE),
        (howdah.SyncHandle, HANDLE),
        (howdah.JobContext, "progress emit"),
    ],
)
def test_the_fixed_verbs_are_there(cls: type, verbs: str) -> None:
    assert {verb for verb in verbs.split() if not callable(getattr(cls, verb, None))} == set()


def test_the_named_priorities_are_those_of_the_contract() -> None:
    priorities = {priority.name: int(priority) for priority in howdah.Priority}
    assert priorities == {"EXPLICIT": 150, "DISCOVERED": 100, "BACKFILL": 30}


def test_every_error_is_in_the_tree_and_public() -> None:
    tree = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert tree <= set(howdah.__all__)
    assert tree == {name for name in tree if name in (errors.__doc__ or "")}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_module_says_what_it_does_in_twelve_lines_at_most(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring, f"{path} has no docstring"
    lines = [line for line in docstring.splitlines() if not re.match(DRAWN, line)]
    if path.name == "__init__.py":  # the map of a package has a line for each module
        lines = [line for line in lines if not re.match(r"\w+(\.py|/)\s", line)]
    assert len(lines) <= FIRST_PROGRAM if path == PACKAGE / "__init__.py" else len(lines) <= 12


def test_importing_howdah_imports_no_driver_but_its_own() -> None:
    code = (
        "import sys, howdah\n"
        "print(*sorted({'psycopg', 'psycopg2', 'sqlalchemy', 'django', 'click', 'rich', 'pydantic'}"
        " & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
