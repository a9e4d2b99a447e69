"""Commits: choose the commit to compare with, and extract its source from git.

Comes before  variants.py, which runs the extracted source

Only `src` is extracted. Both variants use the driver of this checkout, so a change of the driver is
never taken for a change of speed. The source is kept below .bench/ under the commit's full name,
and the next run uses it again.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

MEASURED = "src"  # the part of the tree that decides about speed


class NoCommit(Exception):
    """The commit does not exist, or has no source that could be measured."""


class Commit(NamedTuple):
    """A commit, and why it was chosen."""

    name: str  # the full hash
    subject: str
    why: str

    @property
    def short(self) -> str:
        return self.name[:10]


def choose(asked: str | None, root: Path) -> Commit:
    """Return the commit that was asked for, or else the one before the working tree."""
    if asked:
        return _commit(asked, "as asked", root)
    if _git(root, "status", "--porcelain", "--", MEASURED):
        return _commit("HEAD", f"the last commit, because {MEASURED} has changes since", root)
    return _commit("HEAD~1", f"the one before the last, because {MEASURED} has no changes", root)


def _commit(revision: str, why: str, root: Path) -> Commit:
    try:
        name = _git(root, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    except NoCommit:
        raise NoCommit(f"there is no commit {revision!r} in this repository") from None
    return Commit(name, _git(root, "log", "-1", "--format=%s", name), why)


def extract(commit: Commit, root: Path, parent: Path) -> Path:
    """Extract the commit's source below `parent`, unless it is there, and return its folder."""
    folder = parent / commit.name
    if folder.is_dir():
        return folder / MEASURED
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as unfinished:
        with tarfile.open(fileobj=io.BytesIO(_archive(commit, root))) as archive:
            # as an attribute: Python before 3.11.4 has no parameter `filter`
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(unfinished)
        complete = Path(unfinished) / "complete"
        complete.mkdir()
        (Path(unfinished) / MEASURED).rename(complete / MEASURED)
        complete.rename(folder)  # atomic: the folder exists with all files or not at all
    return folder / MEASURED


def _archive(commit: Commit, root: Path) -> bytes:
    command = ["git", "archive", "--format=tar", commit.name, f"{MEASURED}/howdah"]
    done = subprocess.run(command, cwd=root, capture_output=True)
    if done.returncode != 0:
        raise NoCommit(
            f"commit {commit.short} has no {MEASURED}/howdah to measure: choose a later one"
        )
    return done.stdout


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    except OSError as problem:
        raise NoCommit(f"git cannot be run: {problem}") from problem
    if done.returncode != 0:
        raise NoCommit(f"git failed: {done.stderr.strip()}")
    return done.stdout.strip()
