"""Write the lock files: what `make setup` installs, with the hash of every file.

python tools/lock.py             write them with the newest versions that fit
python tools/lock.py --check     fail if they do not fit pyproject.toml; needs no network

A file is valid for every platform and every Python that we support. It names no registry: a mirror
has the same files, so the same hashes. The requirements are listed at the top of each file, so
`--check` finds one that was added, changed or removed and not locked.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
FOLDER = "requirements"
OLDEST = "3.11"
FOR = "# for: "
TOP = "# Written by `make lock`. Versions and hashes for every platform; no registry is named.\n"


class Lock(NamedTuple):
    """A lock file, and which parts of pyproject.toml it holds."""

    name: str
    package: bool  # the dependencies of howdah itself
    extras: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    within: str | None = None  # a lock file with the same versions

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}.txt"

    def requirements(self, pyproject: dict[str, Any]) -> list[str]:
        project = pyproject["project"]
        requirements: list[str] = [*project["dependencies"]] if self.package else []
        for extra in self.extras:
            requirements += project["optional-dependencies"][extra]
        for group in self.groups:
            requirements += pyproject["dependency-groups"][group]
        return sorted(set(requirements))


# What `make demo` needs; what a contributor needs on top; Patroni, in an environment of its own.
LOCKS = (
    Lock("base", True, ("embedded", "web"), ("build",)),
    Lock("dev", True, ("embedded", "otel", "tui", "web"), ("build", "dev"), within="base"),
    Lock("ha", False, groups=("ha",)),
)


def write(root: Path, lock: Lock) -> None:
    """Let uv choose the versions, and write them with their requirements."""
    wanted = lock.requirements(_pyproject(root))
    with_versions_of = ["--constraint", f"{FOLDER}/{lock.within}.txt"] if lock.within else []
    command = [
        *(sys.executable, "-P", "-m", "uv", "pip", "compile", "-", "--quiet", "--upgrade"),
        *("--universal", "--python-version", OLDEST, "--generate-hashes", "--no-header"),
        *("--no-annotate", "--no-emit-index-url", "--no-emit-find-links", *with_versions_of),
    ]
    done = subprocess.run(  # noqa: S603 - our own command
        command, cwd=root, input="\n".join(wanted), stdout=subprocess.PIPE, text=True, check=True
    )
    top = TOP + "".join(f"{FOR}{requirement}\n" for requirement in wanted)
    (root / FOLDER).mkdir(exist_ok=True)
    (root / lock.path).write_text(f"{top}\n{done.stdout.strip()}\n")


def wrong(root: Path, lock: Lock) -> list[str]:
    """Return what does not fit, one line each."""
    try:
        text = (root / lock.path).read_text()
    except FileNotFoundError:
        return [f"{lock.path} is missing"]
    lines = text.splitlines()
    locked_for = {line.removeprefix(FOR) for line in lines if line.startswith(FOR)}
    wanted = set(lock.requirements(_pyproject(root)))
    problems = [f"{lock.path} does not hold {missing}" for missing in sorted(wanted - locked_for)]
    problems += [
        f"{lock.path} holds {extra}, which is not required any more"
        for extra in sorted(locked_for - wanted)
    ]
    pinned: dict[str, str] = {}
    for entry in re.split(r"\n(?=[^\s#])", "\n".join(lines)):
        if match := re.match(r"([A-Za-z0-9._-]+)==(\S+)", entry):
            pinned[_normalized(match[1])] = match[2]
            if "--hash=sha256:" not in entry:
                problems.append(f"{lock.path} has no hash for {match[0]}")
        elif not entry.startswith("#"):
            problems.append(f"{lock.path} has a line that pins nothing: {entry.splitlines()[0]}")
    for requirement in sorted(wanted):
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        if name is None or _normalized(name[0]) not in pinned:
            problems.append(f"{lock.path} pins no version for {requirement}")
    if "://" in text:
        problems.append(f"{lock.path} names the address of a registry")
    return problems


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pyproject(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


def main(root: Path = ROOT) -> int:
    if "--check" not in sys.argv[1:]:
        for lock in LOCKS:
            write(root, lock)
            print(lock.path)
        return 0
    problems = [line for lock in LOCKS for line in wrong(root, lock)]
    for line in problems:
        print(line, file=sys.stderr)
    if problems:
        print("The lock files do not fit pyproject.toml: run `make lock`.", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
