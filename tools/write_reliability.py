"""Write the table in docs/reliability.md from the newest soak record that is kept.

    python tools/write_reliability.py            write the table
    python tools/write_reliability.py --check    exit 1 when the page says something else

The record is bench/records/<date>-soak/soak.json, written by `make soak`. What stands between the
two marks belongs to this tool; the rest of the page is written by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.stories.soak.record import FaultRecord, SoakRecord, newest  # noqa: E402

PAGE = ROOT / "docs/reliability.md"
COLUMNS = (
    *("fault", "times", "jobs under way", "lost", "settled twice"),
    *("resumed after", "caught up after", "alone"),
)
BEGIN, END = "<!-- soak: begin -->\n", "<!-- soak: end -->\n"


def page(text: str, record: SoakRecord, path: Path) -> str:
    """Return the page with the table of this record in its place."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{PAGE.name} has no {BEGIN.strip()} and {END.strip()}")
    return before + begin + table(record, path) + end + after


def table(record: SoakRecord, path: Path) -> str:
    where = path.relative_to(ROOT).as_posix()
    other = len(record.findings) - record.lost - record.settled_twice
    lines = [
        f"From [{where}](../{where}): {record.minutes:g} minutes, {record.workers} workers,",
        f"PostgreSQL {record.postgres} with a synchronous standby,",
        f"{record.machine['cores']} cores, `HOWDAH_SEED={record.seed}`.",
        "",
        f"**{sum(one.injected for one in record.faults):,} faults, {record.jobs:,} jobs,",
        f"{record.attempts:,} attempts, {record.given_up:,} of them taken from workers that were",
        f"given up. Lost: {record.lost}. Settled twice: {record.settled_twice}.",
        f"Other broken promises: {other}.**",
        f"{record.unknown:,} enqueues got no answer; each became one job or none.",
        "",
        f"| {' | '.join(COLUMNS)} |",
        "|---|--:|--:|--:|--:|--:|--:|---|",
        *(row(one, record) for one in record.faults),
        "",
    ]
    lines += [
        f"Left out on that machine: {what}, {why}.\n" for what, why in record.left_out.items()
    ]
    return "\n".join(lines) + "\n"


def row(one: FaultRecord, record: SoakRecord) -> str:
    cells = (
        one.name,
        str(one.injected),
        f"{one.under_way} ({one.under_way_most})",
        str(record.lost),
        str(record.settled_twice),
        f"{one.resumed:.2f} s ({one.resumed_worst:.2f})",
        f"{one.caught_up:.1f} s ({one.caught_up_worst:.1f})",
        f"`make soak FAULT={one.key} MINUTES=1`",
    )
    return f"| {' | '.join(cells)} |"


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    written = page(text, *newest())
    if "--check" in sys.argv[1:]:
        if written != text:
            print(f"{PAGE.relative_to(ROOT)} is out of date: run tools/write_reliability.py")
            return 1
        return 0
    PAGE.write_text(written, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
