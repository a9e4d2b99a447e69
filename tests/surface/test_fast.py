"""`make test-fast` selects every test but those that its own message names."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.fast import FOLDERS, LEFT_OUT, MARKS, TESTS, message
from tests.support.processes import ROOT


def collect(*options: str) -> tuple[set[str], str]:
    """Return the ids of the tests that pytest selects with these options, and all it prints."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--collect-only",
        "-q",
        "-p",
        "no:randomly",
        *options,
    ]
    env = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if "::" in line}, done.stdout


def test_every_folder_that_is_left_out_exists_and_has_tests() -> None:
    assert [folder for folder in FOLDERS if not any(folder.rglob("test_*.py"))] == []


def test_every_mark_that_is_left_out_is_known(pytestconfig: pytest.Config) -> None:
    known = {line.partition(":")[0] for line in pytestconfig.getini("markers")}
    assert set(MARKS) <= known


@pytest.mark.slow
@pytest.mark.timeout(600)  # it collects the whole suite three times
def test_the_message_names_exactly_the_tests_that_are_left_out() -> None:
    everything, _ = collect()
    marked, _ = collect("-m", " or ".join(MARKS))
    fast, printed = collect("-p", "tests.support.fast")
    in_folders = {
        test
        for test in everything
        if any(test.startswith(f"{folder.relative_to(ROOT).as_posix()}/") for folder in FOLDERS)
    }
    assert fast == everything - marked - in_folders
    for line in message():
        assert line in printed
    for part in LEFT_OUT:
        assert str(part) in printed


def test_the_tests_of_the_path_of_a_job_are_in() -> None:
    path = ("enqueue", "claim", "run", "settle", "upkeep", "observe", "states", "store")
    assert not FOLDERS & {TESTS / name for name in path}
