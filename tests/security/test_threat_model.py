"""Every promise of the threat model names tests that exist and run."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.processes import ROOT

PAGE = ROOT / "docs" / "threat-model.md"
PROMISES = (
    PAGE.read_text(encoding="utf-8")
    .partition("## What we promise")[2]
    .partition("## What we do not promise")[0]
)
ROWS = [
    line
    for line in PROMISES.splitlines()
    if line.startswith("|") and not line.startswith(("| promise", "|---"))
]
LINK = re.compile(r"\[(\w+)\]\(\.\./(tests/[\w/]+\.py)\)")


def test_there_are_promises() -> None:
    assert len(ROWS) > 15


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row)[2:60])
def test_every_promise_is_linked_to_a_test_that_exists(row: str) -> None:
    links = LINK.findall(row)
    assert links, "a promise without a test"
    for name, path in links:
        assert (ROOT / path).is_file(), path
        assert (ROOT / path).stem == name


def test_every_file_of_the_security_suite_is_named() -> None:
    """Each test file must be linked from the promise that it checks."""
    named = {path for _, path in LINK.findall(PROMISES)}
    here = {
        str(path.relative_to(ROOT))
        for folder in ("security", "fuzz", "pgbouncer")
        for path in (ROOT / "tests" / folder).glob("test_*.py")
    }
    about_the_project = {"tests/security/test_threat_model.py"}
    assert here - named == about_the_project


@pytest.mark.timeout(900)  # ten seconds on a machine that does nothing else
def test_the_named_tests_are_collected() -> None:
    named = sorted({path for name, path in LINK.findall(PROMISES) if name.startswith("test_")})
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *named],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    for path in named:
        assert f"{path}::" in done.stdout, f"nothing in {path} is run"


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/threat-model.md"])
def test_every_link_has_a_target(page: str) -> None:
    path = ROOT / page
    targets = re.findall(r"\]\(([^)#]+)", path.read_text(encoding="utf-8"))
    assert targets
    for target in targets:
        assert (path.parent / target).exists(), target
