"""What is installed for development is locked: every file by its hash, from no named registry."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import ROOT
from tools.lock import FOLDER, LOCKS, main, wrong


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what is locked, to change."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_lock_files_fit() -> None:
    done = subprocess.run(
        [sys.executable, "tools/lock.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_dependency_that_was_not_locked_is_told(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change(copy / "pyproject.toml", "dependencies = [\n", 'dependencies = [\n    "left-pad>=1",\n')
    monkeypatch.setattr(sys, "argv", ["lock.py", "--check"])
    assert main(copy) == 1
    said = capsys.readouterr().err
    assert "requirements/base.txt does not hold left-pad>=1" in said
    assert "make lock" in said


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        (
            "pyproject.toml",
            "asyncpg>=0.30,<1",
            "asyncpg>=0.31,<1",
            "does not hold asyncpg>=0.31,<1",
        ),
        ("pyproject.toml", '    "psutil>=6",\n', "", "holds psutil>=6, which is wanted no more"),
        ("requirements/base.txt", "asyncpg==", "somebody==", "pins no version for asyncpg"),
        (
            "requirements/base.txt",
            "# for: asyncpg",
            "--index-url https://x/\n# for: asyncpg",
            "names an address",
        ),
        (
            "requirements/base.txt",
            "\nasyncpg==",
            "\nleft-pad==1.0\nasyncpg==",
            "no hash for left-pad",
        ),
        ("requirements/base.txt", "\nasyncpg==", "\nleft-pad\nasyncpg==", "pins nothing: left-pad"),
    ],
)
def test_what_does_not_fit_is_told(copy: Path, file: str, old: str, new: str, says: str) -> None:
    change(copy / file, old, new)
    assert any(says in line for lock in LOCKS for line in wrong(copy, lock))


def test_a_missing_file_is_told(copy: Path) -> None:
    (copy / FOLDER / "base.txt").unlink()
    assert "requirements/base.txt is missing" in wrong(copy, LOCKS[0])


def test_what_users_get_is_what_is_tested() -> None:
    """The two environments share their versions."""
    pins = [
        set(re.findall(r"^([a-z0-9-]+==\S+)", (ROOT / lock.path).read_text(), re.MULTILINE))
        for lock in LOCKS[:2]
    ]
    assert pins[0] <= pins[1]


def test_the_makefile_installs_with_hashes_only() -> None:
    """Our own package, without dependencies, is the one exception: it is built from this folder."""
    installs = [
        line
        for line in (ROOT / "Makefile").read_text().splitlines()
        if "pip install" in line or "$(PIP)" in line
    ]
    assert len(installs) >= 4
    for line in installs:
        if line.startswith("PIP :="):
            continue
        own = "--no-deps --no-build-isolation --editable ." in line
        assert own or "--require-hashes -r requirements/" in line, line


def test_every_dependency_of_a_user_has_an_upper_bound() -> None:
    requirements = [one for lock in LOCKS[:1] for one in lock.requirements(_pyproject())]
    assert len(requirements) > 8
    assert [one for one in requirements if "<" not in one] == []


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
