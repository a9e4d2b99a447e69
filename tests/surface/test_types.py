"""Types: a wrong argument is an error in the editor, right use is exactly typed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SNIPPETS = Path(__file__).resolve().parent / "snippets"
Reported = dict[str, set[int]]  # file name → lines
ENVIRONMENT = {
    **os.environ,
    # where pyright looks for the interpreter, and so for what is installed
    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project with the snippets in it, far from ours."""
    project = tmp_path_factory.mktemp("project")
    shutil.copy(SNIPPETS / "right.py", project / "right.py")
    shutil.copy(SNIPPETS / "wrong.txt", project / "wrong.py")
    (project / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    return project


def run(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def pyright(folder: Path) -> Reported:
    report = json.loads(run(folder, "pyright", "--outputjson"))
    assert report["summary"]["filesAnalyzed"] == 2
    reported: Reported = {"right.py": set(), "wrong.py": set()}
    for error in report["generalDiagnostics"]:
        reported[Path(error["file"]).name].add(error["range"]["start"]["line"] + 1)
    return reported


@pytest.fixture(scope="module")
def mypy(folder: Path) -> Reported:
    output = run(folder, "mypy", "--strict", "--no-error-summary", "--hide-error-context", ".")
    reported: Reported = {"right.py": set(), "wrong.py": set()}
    for file, line, kind in re.findall(r"^([^:\n]+):(\d+): (\w+):", output, re.M):
        if kind == "error":
            reported[file].add(int(line))
    return reported


@pytest.fixture(params=["pyright", "mypy"])
def reported(request: pytest.FixtureRequest) -> Reported:
    return request.getfixturevalue(request.param)


def marked_wrong() -> set[int]:
    lines = (SNIPPETS / "wrong.txt").read_text().splitlines()
    return {n for n, line in enumerate(lines, start=1) if line.endswith("# wrong")}


def test_right_use_is_exactly_typed(reported: Reported) -> None:
    assert reported["right.py"] == set()


@pytest.mark.slow
def test_exactly_the_wrong_calls_are_reported(reported: Reported) -> None:
    assert len(marked_wrong()) > 30
    assert reported["wrong.py"] == marked_wrong()


@pytest.mark.slow
def test_every_public_name_has_a_complete_type(folder: Path) -> None:
    report: dict[str, Any] = json.loads(
        run(folder, "pyright", "--verifytypes", "howdah", "--ignoreexternal", "--outputjson")
    )
    incomplete = {
        symbol["name"]: [d["message"] for d in symbol["diagnostics"]]
        for symbol in report["typeCompleteness"]["symbols"]
        if symbol["isExported"] and not symbol["isTypeKnown"]
    }
    assert incomplete == {}
    assert report["typeCompleteness"]["packageName"] == "howdah"
    assert report["typeCompleteness"]["completenessScore"] == 1
    assert report["typeCompleteness"]["exportedSymbolCounts"]["withKnownType"] > 100
