"""`make release` refuses a tree that is not ready, and builds packages that hold every file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tools import release

CHANGELOG = (
    "# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2030-01-01\n\n- A change.\n\n## 1.2.2\n\n- Old.\n"
)
PYPROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "howdah"
version = "1.2.3"
requires-python = ">=3.11"

[tool.hatch.build.targets.wheel]
packages = ["src/howdah"]
"""


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=tester", "-c", "user.email=tester@example.org")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A committed tree that is ready for a release."""
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / ".gitignore").write_text("dist/\n")
    package = tmp_path / "src" / "howdah"
    (package / "sql").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sql" / "claim.sql").write_text("select 1;\n")
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def commit(tree: Path) -> None:
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "Prepare a release")


def change(tree: Path, name: str, old: str, new: str) -> None:
    path = tree / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_a_tree_that_is_ready_has_no_obstacles(tree: Path) -> None:
    assert release.obstacles(tree, "v1.2.3") == []
    git(tree, "tag", "v1.2.3")
    assert release.obstacles(tree, "v1.2.3") == []


def test_a_change_that_is_not_committed_is_refused(tree: Path) -> None:
    (tree / "forgotten.py").write_text("")
    (obstacle,) = release.obstacles(tree)
    assert "not committed" in obstacle


def test_a_version_without_a_changelog_is_refused(tree: Path) -> None:
    change(tree, "CHANGELOG.md", "- A change.\n", "")
    commit(tree)
    (obstacle,) = release.obstacles(tree)
    assert "nothing under `## 1.2.3`" in obstacle
    change(tree, "CHANGELOG.md", "## 1.2.3 - 2030-01-01\n", "")
    commit(tree)
    (obstacle,) = release.obstacles(tree)
    assert "nothing under `## 1.2.3`" in obstacle


def test_entries_that_are_still_unreleased_are_refused(tree: Path) -> None:
    change(tree, "CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n- Another change.\n")
    commit(tree)
    (obstacle,) = release.obstacles(tree)
    assert "Unreleased" in obstacle


def test_a_tag_of_another_version_or_commit_is_refused(tree: Path) -> None:
    (obstacle,) = release.obstacles(tree, "v1.2.4")
    assert "v1.2.4" in obstacle
    git(tree, "tag", "v1.2.3")
    commit(tree)
    (obstacle,) = release.obstacles(tree)
    assert "on another commit" in obstacle


def test_red_checks_are_refused_and_nothing_is_built(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tree / "Makefile").write_text("check:\n\tfalse\naudit test:\n\ttrue\n")
    commit(tree)
    monkeypatch.setattr(sys, "argv", ["release.py"])
    assert release.main(tree) == 1
    assert "no release" in capfd.readouterr().err
    assert not (tree / "dist").exists()


def test_a_tree_that_is_ready_is_built(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["release.py", "--checked"])
    assert release.main(tree) == 0
    output = capfd.readouterr().out
    assert "dist/howdah-1.2.3.tar.gz" in output
    assert "dist/howdah-1.2.3-py3-none-any.whl" in output


def test_a_file_that_the_wheel_lacks_is_named(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    change(tree, "pyproject.toml", "packages =", 'exclude = ["*.sql"]\npackages =')
    commit(tree)
    monkeypatch.setattr(sys, "argv", ["release.py", "--checked"])
    assert release.main(tree) == 1
    assert "does not hold src/howdah/sql/claim.sql" in capfd.readouterr().err


def test_the_wheel_of_this_tree_holds_every_file(tmp_path: Path) -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout: nobody knows which files belong to the tree")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", tmp_path]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert release.missing_in(wheel, ROOT) == []
