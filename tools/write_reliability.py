"""Write the table in docs/reliability.md from the newest soak record that is kept.

    python -m tools.write_reliability            write the table
    python -m tools.write_reliability --check    exit 1 when it is out of date

`make soak` writes the record, bench/records/<date>-soak/soak.json. This tool writes the part of the
page between the two markers. The rest is written by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.stories.soak.record import FaultRecord, SoakRecord, newest
from tools.generated_file import ROOT, replace_between, write_or_check

PAGE = ROOT / "docs/reliability.md"
COLUMNS = (
    *("fault", "times", "jobs under way", "lost", "settled twice"),
    *("resumed after", "caught up after", "alone"),
)
BEGIN, END = "<!-- soak: begin -->\n", "<!-- soak: end -->\n"


def page(text: str, record: SoakRecord, path: Path) -> str:
    """Return the page with the table of this record between its markers."""
    if BEGIN not in text or END not in text:
        sys.exit(f"{PAGE.name} has no markers: add {BEGIN.strip()} and {END.strip()}")
    return replace_between(text, BEGIN, END, table(record, path))


def table(record: SoakRecord, path: Path) -> str:
    where = path.relative_to(ROOT).as_posix()
    other = len(record.findings) - record.lost - record.settled_twice
    lines = [
        f"From [{where}](../{where}): {record.minutes:g} minutes, {record.workers} workers,",
        f"PostgreSQL {record.postgres} with a synchronous standby,",
        f"{record.machine['cores']} cores, `HOWDAH_SEED={record.seed}`.",
        "",
        f"**{sum(fault.injected for fault in record.faults):,} faults, {record.jobs:,} jobs,",
        f"{record.attempts:,} attempts, {record.given_up:,} of them taken from workers that were",
        f"given up. Lost: {record.lost}. Settled twice: {record.settled_twice}.",
        f"Other broken promises: {other}.**",
        f"{record.unknown:,} enqueues got no answer; each became one job or none.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
        *(row(fault, record) for fault in record.faults),
        "",
    ]
    lines += [
        f"Left out on that machine: {what}, {why}.\n" for what, why in record.left_out.items()
    ]
    return "\n".join(lines) + "\n"


def row(fault: FaultRecord, record: SoakRecord) -> str:
    cells = (
        fault.name,
        str(fault.injected),
        f"{fault.under_way} ({fault.under_way_most})",
        str(record.lost),
        str(record.settled_twice),
        f"{fault.resumed:.2f} s ({fault.resumed_worst:.2f})",
        f"{fault.caught_up:.1f} s ({fault.caught_up_worst:.1f})",
        f"`make soak FAULT={fault.key} MINUTES=1`",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    text = page(PAGE.read_text(encoding="utf-8"), *newest())
    return write_or_check({PAGE: text}, sys.argv[1:], "make docs")


if __name__ == "__main__":
    sys.exit(main())
