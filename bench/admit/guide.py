"""Guide: write the measured values of docs/guides/comparison.md from the newest full record.

    python -m bench.admit.guide            write them between the markers
    python -m bench.admit.guide --check    exit 1 when they are out of date

Comes after  record.py, whose records it reads
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bench.admit.bars import BARS
from bench.admit.record import newest, read
from bench.admit.report import own_drains, peers
from bench.install import ROOT
from bench.record import RECORDS
from bench.report import targets
from tools.generated_file import replace_between, write_or_check

PAGE = ROOT / "docs" / "guides" / "comparison.md"
BEGIN, END = "<!-- admit:begin -->", "<!-- admit:end -->"
MISSING = "*Not measured in full yet: run `make bench-admit`.*"


def measured(folder: Path, page: Path) -> str:
    """Make the tables, and the line that names their source."""
    record = read(folder)
    results = record.results()
    machine, where = record.machine, os.path.relpath(folder, page.parent)
    source = (
        f"Measured on {record.date[:10]}: {machine['cores']} cores ({machine['cpu']}), PostgreSQL"
        f" {record.postgres['version']}, every commit on disk."
        f" [Record]({where}/summary.md), [chart]({where}/plot.svg)."
    )
    return "\n\n".join([own_drains(results), peers(results), targets(results, BARS), source])


def main(arguments: list[str], page: Path = PAGE, records: Path = RECORDS) -> int:
    folder = newest(records)
    made = MISSING if folder is None else measured(folder, page)
    text = replace_between(page.read_text(encoding="utf-8"), BEGIN, END, f"\n\n{made}\n\n")
    return write_or_check({page: text}, arguments, "python -m bench.admit.guide")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
