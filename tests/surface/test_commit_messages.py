"""tools/check_commits.py refuses a message that does not follow the rules of CONTRIBUTING.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import ROOT
from tools.check_commits import LONGEST, problems

LINK = f"https://example.org/{'x' * LONGEST}"


@pytest.mark.parametrize(
    "message",
    [
        "Release a claim whose answer was lost",
        "x" * LONGEST,
        "fixup! " + "x" * LONGEST,
        f"Retry a claim\n\nThe reasons, and where to read more:\n{LINK}\n",
        "\n\nRetry a claim\n# a comment of git's is not part of the message\n",
        f"Retry a claim\n\n# ------------------------ >8 ------------------------\n{'d' * 200} d",
        f"Merge branch '{'x' * LONGEST}'",
        f'Revert "{"x" * LONGEST}"',
    ],
)
def test_a_good_message_passes(message: str) -> None:
    assert problems(message) == []


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ("", "is empty"),
        ("# only a comment\n", "is empty"),
        ("x" * (LONGEST + 1), f"{LONGEST + 1} characters"),
        ("Retry a claim.", "full stop"),
        ("Retry a claim\nbecause", "second line"),
    ],
)
def test_a_bad_message_is_refused_with_one_sentence(message: str, complaint: str) -> None:
    (problem,) = problems(message)
    assert complaint in problem


def check(target: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "check_commits.py"), target]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_the_hook_checks_a_file(tmp_path: Path) -> None:
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("Retry a claim\n")
    assert check(str(message), tmp_path).returncode == 0
    message.write_text("Retry a claim.\n")
    assert check(str(message), tmp_path).returncode == 1


def test_ci_checks_every_commit_of_a_range(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        identity = ("-c", "user.name=tester", "-c", "user.email=tester@example.org")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--quiet")
    for subject in ("Begin", "x" * (LONGEST + 1), "Retry a claim", "Settle a job."):
        git("commit", "--allow-empty", "--message", subject)
    done = check("HEAD~3..HEAD", tmp_path)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 2
    assert check("HEAD~2..HEAD~1", tmp_path).returncode == 0
