"""The README: its first program runs as it is, and says what a claim takes by default."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from howdah import Queue
from tests.surface.pages import blocks, text

README = Path("README.md")


@pytest.mark.slow
def test_the_first_program_runs(tmp_path: Path) -> None:
    (program,) = (block.text for block in blocks(README) if "asyncio.run" in block.text)
    (tmp_path / "app.py").write_text(program, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if k not in ("HOWDAH_DSN", "DATABASE_URL")}
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=tmp_path,
        env={**environment, "HOWDAH_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "{'bytes': 1234}"
    assert "Ended(" in done.stdout


def test_it_names_the_number_of_jobs_of_a_claim() -> None:
    default = inspect.signature(Queue.worker).parameters["batch_size"].default
    assert f"| up to {default:,} (10,000 if set) |" in text(README)


def test_it_shows_both_commands_before_anything_else_to_do() -> None:
    first_block = blocks(README)[0].text
    assert "make demo" in first_block
    assert "make test" in first_block
