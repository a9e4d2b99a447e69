"""Machine: describe the machine and the commit that a record was measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from bench.install import ROOT


def machine() -> dict[str, str]:
    return {
        "cpu": _first_line_of("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": _memory(),
        "kernel": f"{platform.system()} {platform.release()}",
        "system": _system(),
        "python": platform.python_version(),
    }


def commit() -> str:
    """Return the commit of this checkout, and whether `src` has changes since."""
    head = _git("rev-parse", "--short=12", "HEAD")
    changed = _git("status", "--porcelain", "--", "src")
    return f"{head or 'unknown'}{' with changes' if changed else ''}"


def _git(*words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def _first_line_of(path: str, key: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GiB"


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform()


def describe(
    command: str, commit: str, machine: dict[str, str], postgres: dict[str, str]
) -> list[str]:
    """Return how and on what a record was measured, as lines for its report."""
    settings = {name: value for name, value in postgres.items() if name != "version"}
    return [
        f"command: `{command}`",
        f"howdah: commit {commit}, Python {machine['python']}",
        "machine: {cores} cores ({cpu}), {memory}, {system}, {kernel}".format(**machine),
        f"PostgreSQL {postgres['version']}: "
        + ", ".join(f"{name} {value}" for name, value in settings.items()),
    ]
