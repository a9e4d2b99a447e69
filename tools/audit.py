"""Ask a public advisory database about every package that is locked, through pip-audit.

python tools/audit.py               what `make check` runs
python tools/audit.py --require     for a release: also fails when the database does not answer

pip-audit reads the lock files and asks OSV (osv.dev), which holds PyPI's advisories and GitHub's.
This tool separates "no known vulnerabilities" from "no answer". It warns about the second. Exits
1 for a known vulnerability. A lock file holds the packages of all platforms: those of this platform
are checked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
URL = os.environ.get("HOWDAH_AUDIT_URL", "https://api.osv.dev/v1/query")
LOCKS = ("requirements/dev.txt", "requirements/ha.txt")  # dev holds all of base
TIMEOUT = 15  # seconds for one query


class NoAnswer(Exception):
    """The advisory database did not answer, or its answer could not be read."""


def query(lock: str) -> list[dict[str, Any]]:
    """Return the advisories of each package in a lock file."""
    command = [
        *(sys.executable, "-P", "-m", "pip_audit", "--requirement", lock, "--require-hashes"),
        *("--disable-pip", "--strict", "--vulnerability-service", "osv", "--osv-url", URL),
        *("--timeout", str(TIMEOUT), "--format", "json", "--progress-spinner", "off"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)  # noqa: S603
    try:
        packages: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last_line = (done.stderr.strip() or "no answer").splitlines()[-1]
        raise NoAnswer(last_line) from None
    if skipped := [package["name"] for package in packages if "vulns" not in package]:
        raise NoAnswer(f"no answer about {', '.join(skipped)}")
    return packages


def main() -> int:
    required = "--require" in sys.argv[1:]
    try:
        packages = {
            (package["name"], package["version"]): package
            for lock in LOCKS
            for package in query(lock)
        }
    except NoAnswer as problem:
        print(
            f"DEPENDENCIES NOT AUDITED: the advisory database at {URL} gave no answer:\n{problem}\n"
            "The packages were not checked. Run `make audit` where there is a network.",
            file=sys.stderr,
        )
        return 1 if required else 0
    vulnerable = {key: package["vulns"] for key, package in packages.items() if package["vulns"]}
    for (name, version), vulns in vulnerable.items():
        for vuln in vulns:
            fixed = ", ".join(vuln["fix_versions"]) or "no version yet"
            print(f"{name} {version}: {vuln['id']}, fixed in {fixed}", file=sys.stderr)
    if not vulnerable:
        print(f"{len(packages)} packages audited, no known vulnerabilities")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
