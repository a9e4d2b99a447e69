"""Every example runs by itself, on a private server, says what it promises, and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from howdah import embedded

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

OUTPUT = {
    "first_job": ["hello world"],
    "progress": ["event 8: frame {'number': 7}", "completed: {'frames': 8}"],
    "retries": [
        "fetch: completed after 3 of 5",
        "parse: failed after 1 of 5",
        "call_api: failed after 2 of 5",
        "wait_for_file: completed after 1 of 1",
    ],
    "transaction": ["committed: order 1 is confirmed", "orders with a job: {1}"],
    "exactly_once": ["result: {'paid': 100}", "attempts: 2", "paid: 100"],
    "unique": [
        "enqueued 1 job: [False, True, True]",
        "indexed /home",
        "expired: it was not started",
        "existed: False",
    ],
    "steps": [
        "charged order 7\nIt waits for the signal approved\nshipped with receipt 7, approved by",
    ],
    "bulk": ["enqueued 10,000 jobs", "completed so far: 10,000"],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """One home for all examples, as a user would have; made once."""
    home = tmp_path_factory.mktemp("examples")
    with embedded.join(home):
        yield home


def test_every_example_is_run_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(OUTPUT)


@pytest.mark.parametrize("name", OUTPUT)
def test_an_example_runs_and_prints_the_expected_output(name: str, home: Path) -> None:
    without_dsn = {k: v for k, v in os.environ.items() if k not in ("HOWDAH_DSN", "DATABASE_URL")}
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / f"{name}.py"],
        env={**without_dsn, "HOWDAH_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    for line in OUTPUT[name]:
        assert line in done.stdout
    # what a job raised is logged with its traceback; nothing else raises
    jobs = sum(line.startswith(("job.retry ", "job.fail ")) for line in done.stderr.splitlines())
    assert done.stderr.count("Traceback") <= jobs
