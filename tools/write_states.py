"""Write states.py and docs/states.md from sql/10_states/states.sql.

python -m tools.write_states            write both files
python -m tools.write_states --check    exit 1 when one of them is out of date
"""

from __future__ import annotations

import re
import sys

from tools.generated_file import ROOT, write_or_check

SOURCE = ROOT / "src/howdah/sql/10_states/states.sql"
PYTHON = ROOT / "src/howdah/states.py"
PAGE = ROOT / "docs/states.md"

Move = tuple[str, str, str, str]


def read_source() -> tuple[list[str], list[Move]]:
    """Read the states and the moves from the SQL file."""
    text = SOURCE.read_text()
    listed = re.search(r"check \(value in \((.*?)\)\)", text, re.S)
    assert listed, f"{SOURCE} has no list of states"
    states = re.findall(r"'(\w+)'", listed[1])
    moves = re.findall(r"\('(\w+)',\s*'(\w+)',\s*'(\w+)',\s*'([^']+)'\)", text)
    assert moves, f"{SOURCE} has no moves"
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


def page(moves: list[Move]) -> str:
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
        "A `pending` job is in line, or it waits for its `run_at`. `promote` lets a waiting job",
        "join the line.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    states, moves = read_source()
    texts = {PYTHON: python(states, moves), PAGE: page(moves)}
    return write_or_check(texts, sys.argv[1:], "make states")


if __name__ == "__main__":
    sys.exit(main())
