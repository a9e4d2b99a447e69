"""Write docs/reference/sql.md from the heads of the SQL files.

    python tools/write_sql_reference.py            write the page
    python tools/write_sql_reference.py --check    exit 1 when it is out of date

Each function's file opens with what it does, asks for and answers; the page is those words and
the function's signature, so it cannot say something else than the code.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SQL = ROOT / "src/howdah/sql"
PAGE = ROOT / "docs/reference/sql.md"

ROOMS = {
    "30_enqueue": "Enqueue",
    "40_claim": "Claim",
    "50_run": "Run",
    "60_settle": "Settle",
    "70_upkeep": "Upkeep",
    "75_steer": "Steer",
    "80_observe": "Observe",
}


def head(text: str) -> list[str]:
    """Return the comment that opens a file, without its dashes."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").removeprefix(" "))
    return lines


def signatures(text: str) -> list[str]:
    """Return the functions, procedures and views a file makes, as one would call them."""
    functions = re.findall(
        r"create or replace function (howdah\.\w+\(.*?\)\s*returns .*?)\s*\nlanguage", text, re.S
    )
    procedures = re.findall(
        r"create or replace procedure (howdah\.\w+\(.*?\))\s*\nlanguage", text, re.S
    )
    views = re.findall(r"create or replace view (howdah\.\w+)", text)
    return [*functions, *(f"call {one}" for one in procedures), *(f"view {name}" for name in views)]


def section(path: Path) -> list[str]:
    text = path.read_text()
    made = [s for s in signatures(text) if "returns trigger" not in s]
    title, *body = head(text)
    lines = [f"### {title}", ""]
    if made:
        lines += ["```sql", *made, "```", ""]
    return [*lines, *(_prose(body)), ""]


def _prose(body: list[str]) -> list[str]:
    """Keep indented lines as they stand, in a block of their own."""
    lines: list[str] = []
    indented = False
    for line in body:
        if line.startswith("  ") != indented:
            lines.append("```")
            indented = not indented
        lines.append(line)
    return [*lines, "```"] if indented else lines


def page() -> str:
    lines = [
        "# SQL",
        "",
        "<!-- Written from src/howdah/sql by `make docs`. Do not edit. -->",
        "",
        "Every verb takes sets. Where a worker calls it, it asks for the lease and answers with",
        "what it moved. `howdah sql` prints all of it as one file.",
        "",
    ]
    for folder, title in ROOMS.items():
        lines += [f"## {title}", ""]
        for path in sorted((SQL / folder).glob("*.sql")):
            lines += section(path)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    if "--check" in sys.argv:
        if not PAGE.exists() or PAGE.read_text() != page():
            print(f"{PAGE.relative_to(ROOT)} is out of date: run `make docs`", file=sys.stderr)
            return 1
        return 0
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
