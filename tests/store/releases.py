"""Releases: earlier versions of howdah, taken out of git and run as processes of their own.

A release is a tag `v…` that leads to this checkout. `HOWDAH_UPGRADE_FROM` (commits or tags, with
commas) names others to try. While there is no release, `STAND_IN` is tried instead of one: a commit
of the same, unreleased schema number. Move it forward when a change before the first release breaks
with it on purpose.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.quick.commits import NoCommit, choose, take_out
from tests.support.processes import ROOT

STAND_IN = "a300ac8746"
NO_RELEASE = "NO EARLIER RELEASE: no tag v… leads here, so no upgrade from one was tried"


def releases() -> list[str]:
    """Name what is to be tried, oldest first; nothing where nothing was released."""
    if asked := os.environ.get("HOWDAH_UPGRADE_FROM"):
        return asked.split(",")
    earlier = ("--merged", "HEAD", "--no-contains", "HEAD", "--sort=creatordate")
    done = subprocess.run(
        ["git", "tag", "--list", "v*", *earlier], cwd=ROOT, capture_output=True, text=True
    )
    return done.stdout.split()


def source_of(release: str, folder: Path) -> Path:
    """Take a release's source out of git; skips the test where the history is not there."""
    try:
        return take_out(choose(release, ROOT), ROOT, folder)
    except NoCommit as problem:
        pytest.skip(f"NOT TRIED: {problem} (a checkout without history?)")


def command(source: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    """Return the words and the environment that run `howdah` from this source."""
    paths = os.pathsep.join((str(source), os.environ.get("PYTHONPATH", "")))
    return [sys.executable, "-m", "howdah", *words], {**os.environ, "PYTHONPATH": paths}


def install(source: Path, dsn: str) -> None:
    """Let a release install its own schema."""
    words, environment = command(source, "install", "--dsn", dsn)
    done = subprocess.run(words, env=environment, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@contextmanager
def worker(source: Path, dsn: str, app: Path) -> Generator[subprocess.Popen[bytes]]:
    """Run a release's worker with the queue in the file `app`; killed when the block is left."""
    words, environment = command(source, "worker", f"{app.stem}:queue", "--dsn", dsn)
    process = subprocess.Popen(words, env=environment, cwd=app.parent)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
