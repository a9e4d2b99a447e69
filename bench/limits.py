"""Limits: the figures of docs/guides/limits.md, written from the newest full records.

    python -m bench.limits            write them between the markers
    python -m bench.limits --check    exit 1 when they are out of date

Comes after  findings.py, whose records it reads

Every case is taken from the newest full run in which it was measured. What was never measured in
full says which command does it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from bench.findings import Account, Curve, Finding, as_table, kept, verdicts
from bench.install import ROOT
from bench.record import RECORDS

PAGE = ROOT / "docs" / "guides" / "limits.md"
UpkeepResult = list[tuple[Account, Path]]


def growth(case: str) -> Callable[[UpkeepResult, Path], str | None]:
    """Show one axis: its picture, its table and where both come from."""

    def made(records: UpkeepResult, page: Path) -> str | None:
        for account, folder in records:
            for curve in account.curves:
                if account.what == "growth" and curve.case == case:
                    return _shown(curve, account, folder, page)
        return None

    return made


def _shown(curve: Curve, account: Account, folder: Path, page: Path) -> str:
    shown = as_table(curve, list(curve.lines))
    source = _source(account, folder, page)
    return f"![{curve.title}](../growth/{curve.case}.svg)\n\n{shown}\n\n{source}"


def findings(what: str) -> Callable[[UpkeepResult, Path], str | None]:
    """Show every case of one kind of run, each from its newest record."""

    def made(records: UpkeepResult, page: Path) -> str | None:
        newest: dict[str, tuple[Account, Path]] = {}
        for account, folder in records:
            for case in dict.fromkeys(one.case for one in account.findings):
                if account.what == what:
                    newest.setdefault(case, (account, folder))
        rows: list[tuple[Account, Finding]] = [
            (account, one)
            for case, (account, _) in newest.items()
            for one in account.findings
            if one.case == case
        ]
        sources = dict.fromkeys(_source(*found, page) for found in newest.values())
        return "\n\n".join([verdicts(rows), *sources]) if rows else None

    return made


def _source(account: Account, folder: Path, page: Path) -> str:
    machine = account.machine
    where = os.path.relpath(folder, page.parent)
    return (
        f"Measured on {account.date[:10]}: {machine['cores']} cores ({machine['cpu']}), PostgreSQL"
        f" {account.postgres['version']}, every commit on disk."
        f" [Record]({where}/summary.md), [picture]({where}/plot.svg)."
    )


BLOCKS = {
    "batch_size": (growth("batch_size"), "make bench-growth"),
    "concurrency": (growth("concurrency"), "make bench-growth"),
    "backlog": (growth("backlog"), "make bench-growth"),
    "history": (growth("history"), "make bench-growth"),
    "bad-days": (findings("bad-days"), "make bench-bad-days"),
    "memory": (findings("memory"), "make bench-memory"),
}


def written(text: str, records: UpkeepResult, page: Path) -> str:
    """Return the page with what stands between its markers replaced."""
    for name, (make, command) in BLOCKS.items():
        made = make(records, page) or f"*Not measured in full yet: `{command}` does it.*"
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        between = re.compile(f"({re.escape(begin)}).*?({re.escape(end)})", re.DOTALL)
        text = between.sub(lambda found, made=made: f"{found[1]}\n\n{made}\n\n{found[2]}", text)
    return text


def main(arguments: list[str], page: Path = PAGE, records: Path = RECORDS) -> int:
    text = page.read_text()
    wanted = written(text, kept(records), page)
    if "--check" in arguments:
        if wanted != text:
            print(f"{page.name} is out of date: run `python -m bench.limits`", file=sys.stderr)
        return int(wanted != text)
    if wanted != text:
        page.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
