"""Development dependencies are locked: every file by its hash, and no registry is named."""

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
    """A copy of the project and lock files that a test may change."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / FOLDER, tmp_path / FOLDER)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_lock_files_match_the_project() -> None:
    done = subprocess.run(
        [sys.executable, "tools/lock.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_dependency_that_is_not_locked_is_reported(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change(copy / "pyproject.toml", "dependencies = [\n", 'dependencies = [\n    "left-pad>=1",\n')
    monkeypatch.setattr(sys, "argv", ["lock.py", "--check"])
    assert main(copy) == 1
    errors = capsys.readouterr().err
    assert "requirements/base.txt does not hold left-pad>=1" in errors
    assert "make lock" in errors


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        (
            "pyproject.toml",
            "asyncpg>=0.30,<1",
            "asyncpg>=0.31,<1",
            "does not hold asyncpg>=0.31,<1",
        ),
        (
            "pyproject.toml",
            '    "psutil>=6",\n',
            "",
            "holds psutil>=6, which is not required any more",
        ),
        ("requirements/base.txt", "asyncpg==", "somebody==", "pins no version for asyncpg"),
        (
            "requirements/base.txt",
            "# for: asyncpg",
            "--index-url https://x/\n# for: asyncpg",
            "names the address of a registry",
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
def test_a_lock_file_that_does_not_match_is_reported(
    copy: Path, file: str, old: str, new: str, message: str
) -> None:
    change(copy / file, old, new)
    assert any(message in line for lock in LOCKS for line in wrong(copy, lock))


def test_a_missing_file_is_reported(copy: Path) -> None:
    (copy / FOLDER / "base.txt").unlink()
    assert "requirements/base.txt is missing" in wrong(copy, LOCKS[0])


def test_users_get_the_tested_versions() -> None:
    """The two environments share their versions."""
    pins = [
        set(re.findall(r"^([a-z0-9-]+==\S+)", (ROOT / lock.path).read_text(), re.MULTILINE))
        for lock in LOCKS[:2]
    ]
    assert pins[0] <= pins[1]


def test_the_makefile_installs_with_hashes_only() -> None:
    """Only our own package has no hash: it is built from this folder, without dependencies."""
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
    requirements = [
        requirement for lock in LOCKS[:1] for requirement in lock.requirements(_pyproject())
    ]
    assert len(requirements) > 8
    assert [requirement for requirement in requirements if "<" not in requirement] == []


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
