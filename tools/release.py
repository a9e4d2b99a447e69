"""Build a release: check that all is ready, run the checks, write dist/. Uploads nothing.

python tools/release.py               what `make release` runs
python tools/release.py --checked     the checks have passed already: CI, where they are other jobs
python tools/release.py --tag v1.2.3  refuse as well if this is not the tag of the version

It refuses a tree with changes that are not committed, a version without its section in
CHANGELOG.md, entries that are still under "Unreleased", and checks that fail. The wheel must hold
every file of src/howdah. docs/releasing.md has the whole list of steps.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKS = ("check", "audit", "test")  # make targets


def version(root: Path) -> str:
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def section(changelog: str, title: str) -> str | None:
    """Return the text under `## title` or `## title - date`; None without such a heading."""
    section = re.search(
        rf"^## {re.escape(title)}(?: [^\n]*)?\n(.*?)(?=^## |\Z)",
        changelog,
        re.MULTILINE | re.DOTALL,
    )
    return section[1].strip() if section else None


def obstacles(root: Path, tag: str | None = None) -> list[str]:
    """Return why this tree cannot be released, one sentence each."""
    number = version(root)
    reasons: list[str] = []
    if _git(root, "status", "--porcelain"):
        reasons.append("The tree has changes that are not committed: commit or remove them.")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not section(changelog, number):
        reasons.append(f"CHANGELOG.md has nothing under `## {number}`: say there what changed.")
    if section(changelog, "Unreleased"):
        reasons.append(
            f"CHANGELOG.md has entries under `## Unreleased`: move them to `## {number}`."
        )
    if tag is not None and tag != f"v{number}":
        reasons.append(f"The tag is {tag}, but the version in pyproject.toml is {number}.")
    tagged = _git(root, "tag", "--list", f"v{number}")
    if tagged and _git(root, "rev-parse", f"{tagged}^{{commit}}") != _git(
        root, "rev-parse", "HEAD"
    ):
        reasons.append(f"The tag {tagged} is on another commit: raise the version.")
    return reasons


def build(root: Path) -> list[Path]:
    """Write the sdist and the wheel to dist/, and return both."""
    dist = root / "dist"
    for old in (*dist.glob("*.whl"), *dist.glob("*.tar.gz")):
        old.unlink()
    command = (sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--target", "wheel")
    subprocess.run(command, cwd=root, check=True)  # noqa: S603 - our own build backend
    return [*dist.glob("*.tar.gz"), *dist.glob("*.whl")]


def missing_in(wheel: Path, root: Path) -> list[str]:
    """Return the tracked files of the package that a wheel does not hold."""
    tracked = _git(root, "ls-files", "src/howdah").splitlines()
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    return [name for name in tracked if name.removeprefix("src/") not in held]


def _git(root: Path, *arguments: str) -> str:
    command = ("git", *arguments)
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    return done.stdout.strip()


def main(root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Build a release. Nothing is uploaded.")
    parser.add_argument("--checked", action="store_true", help="do not run the checks")
    parser.add_argument("--tag", help="the tag that this release is built for")
    options = parser.parse_args()

    reasons = obstacles(root, options.tag)
    for reason in reasons:
        print(reason, file=sys.stderr)
    if reasons:
        return 1
    if not options.checked:
        make = shutil.which("make") or "make"
        if subprocess.run((make, *CHECKS), cwd=root).returncode != 0:  # noqa: S603
            print(f"`make {' '.join(CHECKS)}` fails: no release.", file=sys.stderr)
            return 1
    sdist, wheel = build(root)
    if missing := missing_in(wheel, root):
        print(f"{wheel.name} does not hold {', '.join(missing)}.", file=sys.stderr)
        return 1
    print(f"{sdist.relative_to(root)}\n{wheel.relative_to(root)}")
    print(
        f"Nothing was uploaded. Next: git tag --annotate v{version(root)}; see docs/releasing.md."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
