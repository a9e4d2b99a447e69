"""Releases: earlier versions of howdah, taken from git and run as processes.

A release is a tag `v…` that is an ancestor of this checkout. `HOWDAH_UPGRADE_FROM` (commits or
tags, with commas) names others. While there is no release, `STAND_IN` is used: a commit of the
same, unreleased schema number. Move it forward when a change before the first release breaks with
it on purpose.
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

from bench.quick.commits import NoCommit, choose, extract
from tests.support.processes import ROOT

STAND_IN = "ad9ecde499"
NO_RELEASE = "NO EARLIER RELEASE: no tag v… is an ancestor, so no upgrade from a release was tested"


def releases() -> list[str]:
    """Return the releases to test, oldest first; empty if there is no release."""
    if names := os.environ.get("HOWDAH_UPGRADE_FROM"):
        return names.split(",")
    earlier = ("--merged", "HEAD", "--no-contains", "HEAD", "--sort=creatordate")
    result = subprocess.run(
        ["git", "tag", "--list", "v*", *earlier], cwd=ROOT, capture_output=True, text=True
    )
    return result.stdout.split()


def source_of(release: str, folder: Path) -> Path:
    """Extract a release's source from git; skip the test if the git history is missing."""
    try:
        return extract(choose(release, ROOT), ROOT, folder)
    except NoCommit as problem:
        pytest.skip(f"NOT TESTED: {problem} (a checkout without history?)")


def command(source: Path, *words: str) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment that run `howdah` from this source."""
    paths = os.pathsep.join((str(source), os.environ.get("PYTHONPATH", "")))
    return [sys.executable, "-m", "howdah", *words], {**os.environ, "PYTHONPATH": paths}


def install(source: Path, dsn: str) -> None:
    """Install a release's schema with the code of that release."""
    words, environment = command(source, "install", "--dsn", dsn)
    result = subprocess.run(words, env=environment, cwd=source, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@contextmanager
def worker(source: Path, dsn: str, app: Path) -> Generator[subprocess.Popen[bytes]]:
    """Run a release's worker with the queue in the file `app`; kill it when the block ends."""
    words, environment = command(source, "worker", f"{app.stem}:queue", "--dsn", dsn)
    process = subprocess.Popen(words, env=environment, cwd=app.parent)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()
