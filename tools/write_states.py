"""Write states.py and docs/states.md from the one truth of states, sql/10_states/states.sql.

python tools/write_states.py            write both files
python tools/write_states.py --check    exit 1 when one of them is out of date
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRUTH = ROOT / "src/howdah/sql/10_states/states.sql"
PYTHON = ROOT / "src/howdah/states.py"
PICTURE = ROOT / "docs/states.md"

Move = tuple[str, str, str, str]


def read_truth() -> tuple[list[str], list[Move]]:
    """Read the states and the moves out of the SQL file."""
    text = TRUTH.read_text()
    listed = re.search(r"check \(value in \((.*?)\)\)", text, re.S)
    assert listed, f"{TRUTH} has no list of states"
    states = re.findall(r"'(\w+)'", listed[1])
    moves = re.findall(r"\('(\w+)',\s*'(\w+)',\s*'(\w+)',\s*'([^']+)'\)", text)
    assert moves, f"{TRUTH} has no moves"
    return states, moves


def python(states: list[str], moves: list[Move]) -> str:
    verbs = list(dict.fromkeys(verb for verb, *_ in moves))
    lines = [
        '"""States: what a job can be. Written from sql/10_states/states.sql.',
        "",
        "Do not edit: `make states` writes this file, `make check` compares it.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from enum import StrEnum",
        "",
        "",
        "class State(StrEnum):",
        *(f'    {state.upper()} = "{state}"' for state in states),
        "",
        "    @property",
        "    def finished(self) -> bool:",
        '        """Whether a job in this state has ended."""',
        "        return self in (State.COMPLETED, State.FAILED, State.CANCELLED)",
        "",
        "",
        "class Verb(StrEnum):",
        *(f'    {verb.upper()} = "{verb}"' for verb in verbs),
        "",
        "",
        "MOVES: frozenset[tuple[Verb, State, State]] = frozenset(",
        "    {",
        *(
            f"        (Verb.{verb.upper()}, State.{source.upper()}, State.{target.upper()}),"
            for verb, source, target, _ in moves
        ),
        "    }",
        ")",
        "",
    ]
    return "\n".join(lines)


def picture(moves: list[Move]) -> str:
    lines = [
        "# States",
        "",
        "<!-- Written from src/howdah/sql/10_states/states.sql by `make states`. Do not edit. -->",
        "",
        "```mermaid",
        "stateDiagram-v2",
        "    [*] --> pending: enqueue",
        *(f"    {source} --> {target}: {verb}" for verb, source, target, _ in moves),
        "```",
        "",
        "| verb | from | to | meaning |",
        "|---|---|---|---|",
        *(
            f"| {verb} | {source} | {target} | {meaning} |"
            for verb, source, target, meaning in moves
        ),
        "",
        "`pending` is one state with two places: *in line*, or *waiting* for its `run_at`;",
        "`promote` lets a waiting job join the line.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    states, moves = read_truth()
    written = {PYTHON: python(states, moves), PICTURE: picture(moves)}
    if "--check" in sys.argv:
        stale = [
            path for path, text in written.items() if not path.exists() or path.read_text() != text
        ]
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date: run `make states`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in written.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
