"""Write docs/reference/sql.md from the header comments of the SQL files.

    python -m tools.write_sql_reference            write the page
    python -m tools.write_sql_reference --check    exit 1 when it is out of date

Each file begins with a comment: what the function does, what it takes, what it returns. The page is
those comments with the signatures of the functions and the columns of the tables, so it always
agrees with the code.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.generated_file import ROOT, write_or_check

SQL = ROOT / "src/howdah/sql"
PAGE = ROOT / "docs/reference/sql.md"

# The path of a job first, then what it rests on.
CHAPTERS = {
    "30_enqueue": "Enqueue",
    "35_admit": "Admit",
    "37_schedules": "Schedules",
    "40_claim": "Claim",
    "50_run": "Run",
    "52_steps": "Steps",
    "60_settle": "Settle",
    "70_upkeep": "Upkeep",
    "75_steer": "Steer",
    "80_observe": "Observe",
    "25_notify": "Notify",
    "27_checks": "Checks",
    "55_finish": "Finish",
    "05_basics": "Basics",
    "20_tables": "Tables",
    "10_states": "States",
    "00_schema.sql": "Schema",
}


def header(text: str) -> list[str]:
    """Return the comment at the top of a file, without its dashes."""
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").removeprefix(" "))
    return lines


def signatures(text: str) -> list[str]:
    """Return the functions, procedures, views and tables that a file makes."""
    functions = re.findall(
        r"create or replace function (howdah\.\w+\(.*?\)\s*returns .*?)\s*\nlanguage", text, re.S
    )
    procedures = re.findall(
        r"create or replace procedure (howdah\.\w+\(.*?\))\s*\nlanguage", text, re.S
    )
    views = re.findall(r"create or replace view (howdah\.\w+)", text)
    tables = re.findall(r"^create (table howdah\.\w+ .*?);", text, re.M | re.S)
    return [
        *functions,
        *(f"call {procedure}" for procedure in procedures),
        *(f"view {name}" for name in views),
        *tables,
    ]


def section(path: Path) -> list[str]:
    text = path.read_text()
    public = [s for s in signatures(text) if "returns trigger" not in s]
    title, *body = header(text)
    lines = [f"### {title}", ""]
    if public:
        lines += ["```sql", *public, "```", ""]
    return [*lines, *(_prose(body)), ""]


def _prose(body: list[str]) -> list[str]:
    """Put indented lines into code blocks."""
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
        "All functions, views and tables of the schema `howdah`. How to use them is in",
        "[plain SQL and other languages](../guides/sql.md). `howdah sql` prints them as one file.",
        "",
        "A function that moves jobs takes many at once. A function for workers takes the lease of",
        "each job (worker, id and attempt) and returns the ids of the jobs that it moved.",
        "",
    ]
    for name, title in CHAPTERS.items():
        lines += [f"## {title}", ""]
        for path in sorted((SQL / name).glob("*.sql")) or [SQL / name]:
            lines += section(path)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    return write_or_check({PAGE: page()}, sys.argv[1:], "make docs")


if __name__ == "__main__":
    sys.exit(main())
