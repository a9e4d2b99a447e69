"""Debian: programs that tests need and that are not on PyPI.

A program is taken from PATH. If it is missing and we are root, Debian's package is installed, one
at a time. `python -m tests.support.debian` installs all of them before the tests begin. It names
those that are missing, and so do the tests that are skipped.
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
    """Return the path of a package's program; install it if we are root."""
    names = WANTED[package]
    if (path := _on_path(names)) is not None or os.geteuid() != 0:
        return path
    with (Path(tempfile.gettempdir()) / "howdah-apt.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _on_path(names) or _installed(package, names)


def missing(package: str) -> str:
    """Say what to do about a missing program."""
    return f"install Debian's package `{package}`, or any other, so that `{package}` is on PATH"


def _on_path(names: Sequence[str]) -> str | None:
    return next((path for name in names if (path := shutil.which(name, path=PATH))), None)


def _installed(package: str, names: Sequence[str]) -> str | None:
    apt = shutil.which("apt-get")
    if apt is None:
        return None
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    wait_for_lock = ("-o", "DPkg::Lock::Timeout=300")  # seconds: another apt may run
    for arguments in (("update",), ("install", "-y", "--no-install-recommends", package)):
        command = [apt, "-qq", *wait_for_lock, *arguments]
        subprocess.run(command, capture_output=True, env=quiet, timeout=600)
    return _on_path(names)


if __name__ == "__main__":
    for wanted in WANTED:
        if program(wanted) is None:
            print(f"WITHOUT {wanted.upper()} SOME TESTS ARE SKIPPED: {missing(wanted)}")
