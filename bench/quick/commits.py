"""Commits: which commit to compare with, and its source, taken out of git.

Comes before  sides.py, which runs what was taken out

Only `src` is taken: both sides are driven by the driver of this checkout, so that a change of the
driver is never mistaken for a change of speed. What was taken out is kept below .bench/ under the
commit's full name, so the next run finds it there.
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
    """There is no such commit, or nothing in it that could be measured."""


class Commit(NamedTuple):
    """A commit, and why it was chosen."""

    name: str  # in full
    subject: str
    why: str

    @property
    def short(self) -> str:
        return self.name[:10]


def choose(asked: str | None, root: Path) -> Commit:
    """Take the commit that was asked for; else the one before what is in the working tree."""
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


def take_out(commit: Commit, root: Path, ground: Path) -> Path:
    """Put the commit's source below `ground`, unless it is there; returns the folder of it."""
    folder = ground / commit.name
    if folder.is_dir():
        return folder / MEASURED
    ground.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ground) as unfinished:
        with tarfile.open(fileobj=io.BytesIO(_archive(commit, root))) as archive:
            # as an attribute: Python before 3.11.4 takes no `filter`
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(unfinished)
        made = Path(unfinished) / "made"
        made.mkdir()
        (Path(unfinished) / MEASURED).rename(made / MEASURED)
        made.rename(folder)  # all of it or nothing
    return folder / MEASURED


def _archive(commit: Commit, root: Path) -> bytes:
    command = ["git", "archive", "--format=tar", commit.name, f"{MEASURED}/howdah"]
    done = subprocess.run(command, cwd=root, capture_output=True)
    if done.returncode != 0:
        raise NoCommit(f"commit {commit.short} has no {MEASURED}/howdah to measure")
    return done.stdout


def _git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
    except OSError as problem:
        raise NoCommit(f"git cannot be run: {problem}") from problem
    if done.returncode != 0:
        raise NoCommit(f"git said: {done.stderr.strip()}")
    return done.stdout.strip()
