"""Check commit messages: a short subject, then an empty line, then the reasons.

python tools/check_commits.py .git/COMMIT_EDITMSG     one message in a file: the commit-msg hook
python tools/check_commits.py main..HEAD              every commit of a range: CI

The subject has at most 72 characters and no full stop at its end. The second line is empty.
Messages of merges and reverts that git wrote are not checked.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LONGEST = 72
SCISSORS = "# ------------------------ >8 ------------------------"
WORDED_BY_GIT = ("Merge ", 'Revert "')
TO_BE_SQUASHED = ("fixup! ", "squash! ", "amend! ")


def problems(message: str) -> list[str]:
    """Return what is wrong with a message, each in one sentence."""
    text = message.partition(SCISSORS)[0]
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("#")]
    while lines and not lines[0]:
        lines.pop(0)
    if not lines:
        return ["The message is empty: write a subject."]
    subject, *rest = lines
    if subject.startswith(WORDED_BY_GIT):
        return []
    for prefix in TO_BE_SQUASHED:
        subject = subject.removeprefix(prefix)
    wrong: list[str] = []
    if len(subject) > LONGEST:
        wrong.append(
            f"The subject has {len(subject)} characters, at most {LONGEST} are allowed:"
            " name one change, and give its reasons in the body."
        )
    if subject.endswith("."):
        wrong.append("The subject ends with a full stop: remove it.")
    if rest and rest[0]:
        wrong.append("The second line is not empty: put an empty line after the subject.")
    return wrong


def messages(target: str) -> dict[str, str]:
    """Return the messages to check, by the name that a report gives them."""
    if ".." not in target:
        return {target: Path(target).read_text(encoding="utf-8")}
    command = ("git", "log", "--no-merges", "-z", "--format=%h%n%B", target, "--")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    commits = (entry.partition("\n") for entry in done.stdout.split("\0") if entry)
    return {commit: message for commit, _, message in commits}


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    bad = 0
    for name, message in messages(sys.argv[1]).items():
        for problem in problems(message):
            print(f"{name}: {problem}", file=sys.stderr)
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
