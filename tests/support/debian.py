"""Debian: programs that tests need and pip does not have.

A program is found on PATH, or installed from Debian's package by whoever is root, one at a time.
`python -m tests.support.debian` gets all of them before the tests begin, so that no test's time
goes into it; what cannot be had is said loudly, there and by the tests that are skipped.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"))
WANTED = {
    "chromium": ("chromium", "chromium-browser", "google-chrome"),
    "pgbouncer": ("pgbouncer",),
}


@cache
def program(package: str) -> str | None:
    """Return where a package's program is; install it where that is ours to do."""
    names = WANTED[package]
    if (found := _on_path(names)) is not None or os.geteuid() != 0:
        return found
    with (Path(tempfile.gettempdir()) / "howdah-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _on_path(names) or _installed(package, names)


def missing(package: str) -> str:
    """Say what to do about a program that is not there."""
    return f"install Debian's package `{package}`, or any other, so that `{package}` is on PATH"


def _on_path(names: Sequence[str]) -> str | None:
    return next((found for name in names if (found := shutil.which(name, path=PATH))), None)


def _installed(package: str, names: Sequence[str]) -> str | None:
    apt = shutil.which("apt-get")
    if apt is None:
        return None
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update",), ("install", "-y", "--no-install-recommends", package)):
        subprocess.run([apt, "-qq", *words], capture_output=True, env=quiet, timeout=600)
    return _on_path(names)


if __name__ == "__main__":
    for wanted in WANTED:
        if program(wanted) is None:
            print(f"WITHOUT {wanted.upper()} SOME TESTS ARE SKIPPED: {missing(wanted)}")
