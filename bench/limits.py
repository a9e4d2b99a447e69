"""Limits: write the measured values of docs/guides/limits.md from the newest full records.

    python -m bench.limits            write them between the markers
    python -m bench.limits --check    exit 1 when they are out of date

Comes after  case_record.py, whose records it reads

Every case comes from the newest full run that measured it. A case without a full run is shown with
the command that measures it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from bench.case_record import CaseRecord, Curve, Finding, as_table, full_records, verdicts
from bench.install import ROOT
from bench.record import RECORDS
from tools.generated_file import replace_between, write_or_check

PAGE = ROOT / "docs" / "guides" / "limits.md"
Records = list[tuple[CaseRecord, Path]]
MakeBlock = Callable[[Records, Path], str | None]


def growth(case: str) -> MakeBlock:
    """Show one axis: its chart, its table and their source."""

    def make(records: Records, page: Path) -> str | None:
        for record, folder in records:
            for curve in record.curves:
                if record.suite == "growth" and curve.case == case:
                    return _shown(curve, record, folder, page)
        return None

    return make


def _shown(curve: Curve, record: CaseRecord, folder: Path, page: Path) -> str:
    values = as_table(curve, list(curve.series))
    source = _source(record, folder, page)
    return f"![{curve.title}](../growth/{curve.case}.svg)\n\n{values}\n\n{source}"


def findings(*suites: str) -> MakeBlock:
    """Show every case of a suite, each from its newest record. A suite may have an older name."""

    def make(records: Records, page: Path) -> str | None:
        newest: dict[str, tuple[CaseRecord, Path]] = {}
        for record, folder in records:
            for case in dict.fromkeys(finding.case for finding in record.findings):
                if record.suite in suites:
                    newest.setdefault(case, (record, folder))
        rows: list[tuple[CaseRecord, Finding]] = [
            (record, finding)
            for case, (record, _) in newest.items()
            for finding in record.findings
            if finding.case == case
        ]
        sources = dict.fromkeys(_source(*entry, page) for entry in newest.values())
        return "\n\n".join([verdicts(rows), *sources]) if rows else None

    return make


def _source(record: CaseRecord, folder: Path, page: Path) -> str:
    machine = record.machine
    where = os.path.relpath(folder, page.parent)
    return (
        f"Measured on {record.date[:10]}: {machine['cores']} cores ({machine['cpu']}), PostgreSQL"
        f" {record.postgres['version']}, every commit on disk."
        f" [Record]({where}/summary.md), [chart]({where}/plot.svg)."
    )


BLOCKS: dict[str, tuple[MakeBlock, str]] = {
    "batch_size": (growth("batch_size"), "make bench-growth"),
    "concurrency": (growth("concurrency"), "make bench-growth"),
    "backlog": (growth("backlog"), "make bench-growth"),
    "history": (growth("history"), "make bench-growth"),
    "adverse": (findings("adverse", "bad-days"), "make bench-adverse"),
    "memory": (findings("memory"), "make bench-memory"),
}


def with_blocks(text: str, records: Records, page: Path) -> str:
    """Return the page with new text between its markers."""
    for name, (make, command) in BLOCKS.items():
        block = make(records, page) or f"*Not measured in full yet: run `{command}`.*"
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        text = replace_between(text, begin, end, f"\n\n{block}\n\n")
    return text


def main(arguments: list[str], page: Path = PAGE, records: Path = RECORDS) -> int:
    text = with_blocks(page.read_text(encoding="utf-8"), full_records(records), page)
    return write_or_check({page: text}, arguments, "python -m bench.limits")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
