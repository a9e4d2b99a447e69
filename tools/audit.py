"""Ask a public advisory database about every package that is installed here.

python tools/audit.py               what `make check` runs
python tools/audit.py --require     for a release: fails too when nobody could be asked

The database is OSV (osv.dev), which holds PyPI's advisories and GitHub's; the question is one HTTP
request with the standard library. Exits 1 for a known vulnerability. Where the database cannot be
reached nothing is known, and that is said loudly: it is not the same as "no vulnerabilities".
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from importlib import metadata
from typing import Any

URL = os.environ.get("HOWDAH_AUDIT_URL", "https://api.osv.dev/v1/querybatch")
PATIENCE = 15.0  # seconds
OURS = "howdah"


class NobodyAnswers(Exception):
    """The advisory database could not be asked, or said something else than an answer."""


def installed() -> list[tuple[str, str]]:
    """List what is installed here, by name and version."""
    found = {(each.metadata["Name"], each.version) for each in metadata.distributions()}
    return sorted((name, version) for name, version in found if name != OURS)


def ask(packages: list[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
    """Return the advisories known for each package that has any."""
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": version}
        for name, version in packages
    ]
    request = urllib.request.Request(  # noqa: S310 - the address above, or the one a test gives
        URL,
        data=json.dumps({"queries": queries}).encode(),
        headers={"Content-Type": "application/json", "User-Agent": "howdah-audit"},
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            results: list[dict[str, Any]] = list(json.load(answer)["results"])
    except (OSError, ValueError, KeyError, TypeError, urllib.error.URLError) as problem:
        raise NobodyAnswers(f"{URL}: {problem}") from problem
    if len(results) != len(packages):
        raise NobodyAnswers(f"{URL}: {len(packages)} questions, {len(results)} answers")
    return {
        package: sorted(advisory["id"] for advisory in result["vulns"])
        for package, result in zip(packages, results, strict=True)
        if result.get("vulns")
    }


def main() -> int:
    required = "--require" in sys.argv[1:]
    packages = installed()
    try:
        found = ask(packages)
    except NobodyAnswers as problem:
        print(
            f"DEPENDENCIES NOT AUDITED: the advisory database cannot be reached ({problem}).\n"
            f"Nothing is known about the {len(packages)} packages here. Run `make audit` where "
            "there is a network.",
            file=sys.stderr,
        )
        return 1 if required else 0
    for (name, version), advisories in found.items():
        links = " ".join(f"https://osv.dev/{id}" for id in advisories)
        print(f"{name} {version} has known vulnerabilities: {links}", file=sys.stderr)
    if not found:
        print(f"{len(packages)} packages audited, no known vulnerabilities")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
