"""The guide for testers: its files, saved as it says, pass."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/testing.md"
FILES = re.compile(r"```python\n# (\S+\.py)\n(.*?)```", re.DOTALL)


def test_every_block_of_python_is_a_file() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert len(FILES.findall(text)) == text.count("```python")


@pytest.mark.slow
def test_the_files_of_the_guide_pass(tmp_path: Path) -> None:
    for name, content in FILES.findall(GUIDE.read_text(encoding="utf-8")):
        (tmp_path / name).write_text(content, encoding="utf-8")
    ours = ("HOWDAH_", "DATABASE_URL", "PYTEST_")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-W",
            "error::ResourceWarning",
            "-p",
            "no:cacheprovider",
        ],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if not name.startswith(ours)}
        | {name: os.environ[name] for name in ("HOWDAH_PG_BIN",) if name in os.environ},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout
