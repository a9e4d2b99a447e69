"""A test that leaks an asyncpg connection fails, and the failure names it.

Each case is a run of pytest of its own, with the hook of tests/conftest.py.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
CONFTEST = "from tests.conftest import pytest_runtest_teardown as pytest_runtest_teardown\n"
OPENED_BY_A_TEST = """
import asyncpg, os

kept = []

async def test_first():
    connection = await asyncpg.connect(os.environ["TEST_DSN"])
    kept.append(connection)  # so it is not collected

async def test_second():
    pass
"""
OPENED_BY_A_QUEUE = """
import os
from howdah import Queue

async def test_first():
    queue = Queue(os.environ["TEST_DSN"])
    await queue.counts()

async def test_second():
    pass
"""
COLLECTED_LATER = """
import asyncio, asyncpg, gc, os

loop = asyncio.new_event_loop()  # outlives both tests
kept = []

def test_first():
    kept.append(loop.run_until_complete(asyncpg.connect(os.environ["TEST_DSN"])))

def test_second():
    kept.clear()
    gc.collect()

def test_third():
    loop.run_until_complete(asyncio.sleep(0))  # closes the socket
    loop.close()
"""


def run(tests: str, dsn: str, folder: Path) -> str:
    """Run these tests in their order; returns the output of pytest."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_leaking.py").write_text(tests)
    command = [
        *(sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:cacheprovider"),
        *("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder), str(folder)),
    ]
    environment = {**os.environ, "TEST_DSN": dsn, "PYTHONPATH": str(ROOT)}
    environment = {name: environment[name] for name in environment if "XDIST" not in name}
    completed = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    return completed.stdout + completed.stderr


def test_a_test_that_leaves_a_connection_open_fails(dsn: str, tmp_path: Path) -> None:
    output = run(OPENED_BY_A_TEST, dsn, tmp_path)
    assert "ERROR at teardown of test_first" in output, output
    assert re.search(r"::test_first opened a connection .*test_leaking\.py:7\b", output), output
    assert "2 passed, 1 error" in output, output


def test_a_test_whose_open_connection_is_collected_fails(dsn: str, tmp_path: Path) -> None:
    output = run(OPENED_BY_A_TEST.replace("kept.append(connection)", "pass"), dsn, tmp_path)
    assert "ERROR at teardown of test_first" in output, output
    assert "2 passed, 1 error" in output, output


def test_a_connection_collected_in_a_later_test_names_the_test_that_opened_it(
    dsn: str, tmp_path: Path
) -> None:
    output = run(COLLECTED_LATER, dsn, tmp_path)
    assert re.search(r"::test_first opened a connection .*test_leaking\.py:8\b", output), output
    assert "3 passed, 1 error" in output, output


def test_a_queue_that_is_closed_with_its_loop_leaks_nothing(dsn: str, tmp_path: Path) -> None:
    assert "2 passed" in run(OPENED_BY_A_QUEUE, dsn, tmp_path)
