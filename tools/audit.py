"""Ask a public advisory database about every package that is locked, through pip-audit.

python tools/audit.py               what `make check` runs
python tools/audit.py --require     for a release: fails too when nobody could be asked

pip-audit reads the lock files and asks OSV (osv.dev), which holds PyPI's advisories and GitHub's.
This adds one thing: the difference between "no known vulnerabilities" and "nobody answered".
Only the first is good news. The second is said loudly. Exits 1 for a known vulnerability. Of a
lock for all platforms, what is installed on this one is asked about.
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
PATIENCE = 15  # seconds for one question


class NobodyAnswers(Exception):
    """The advisory database could not be asked, or said something else than an answer."""


def ask(lock: str) -> list[dict[str, Any]]:
    """Return what is known of each package in a lock file."""
    command = [
        *(sys.executable, "-P", "-m", "pip_audit", "--requirement", lock, "--require-hashes"),
        *("--disable-pip", "--strict", "--vulnerability-service", "osv", "--osv-url", URL),
        *("--timeout", str(PATIENCE), "--format", "json", "--progress-spinner", "off"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)  # noqa: S603
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = (done.stderr.strip() or "no answer").splitlines()[-1]
        raise NobodyAnswers(last) from None
    if skipped := [one["name"] for one in found if "vulns" not in one]:
        raise NobodyAnswers(f"nothing was learnt of {', '.join(skipped)}")
    return found


def main() -> int:
    required = "--require" in sys.argv[1:]
    try:
        packages = {(one["name"], one["version"]): one for lock in LOCKS for one in ask(lock)}
    except NobodyAnswers as problem:
        print(
            f"DEPENDENCIES NOT AUDITED: the advisory database at {URL} gave no answer:\n{problem}\n"
            "Nothing is known about the packages here. Run `make audit` where there is a network.",
            file=sys.stderr,
        )
        return 1 if required else 0
    vulnerable = {package: one["vulns"] for package, one in packages.items() if one["vulns"]}
    for (name, version), vulns in vulnerable.items():
        for vuln in vulns:
            fixed = ", ".join(vuln["fix_versions"]) or "no version yet"
            print(f"{name} {version}: {vuln['id']}, fixed in {fixed}", file=sys.stderr)
    if not vulnerable:
        print(f"{len(packages)} packages audited, no known vulnerabilities")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main())
