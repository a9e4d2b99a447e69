"""Table: the README's comparison, written from the newest record of everything.

    python -m bench.table            write it between the markers
    python -m bench.table --check    exit 1 when it is out of date

A README without markers, or no record yet, leaves nothing to write and nothing to check.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.figures import Figures, figures
from bench.install import ROOT
from bench.record import RECORDS, Record, in_order, newest, read
from bench.report import table

README = ROOT / "README.md"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
COLUMNS = {
    "enqueue_bulk": "bulk enqueue/s",
    "enqueue_single": "single enqueue/s",
    "drain_1": "drained/s, 1 process",
    "drain_2": "2 processes",
}


def comparison(record: Record, where: str) -> str:
    """Make the table, and the line that says where it comes from."""
    found = figures(record.measurements)
    rows = [
        [_name(record, peer), *_cells(found, peer), record.peers[peer].keeps]
        for peer in in_order(record.peers)
    ]
    head = ["", *COLUMNS.values(), "pickup p50 / p99, ms", "keeps of a finished job"]
    machine = record.machine
    turns = max(one.repetition for one in record.measurements)
    often = "One run" if turns == 1 else f"Medians of {turns} repetitions in one run"
    source = (
        f"{often} on {machine['cores']} cores ({machine['cpu']}), PostgreSQL"
        f" {record.postgres['version']}, every commit on disk; Redis reaches it once a second."
        f" Settings, spread and raw numbers: [{where}]({where}/summary.md)."
    )
    return f"{table(head, rows)}\n\n{source}"


def _name(record: Record, peer: str) -> str:
    note = record.peers[peer]
    return f"{note.title} on Redis" if note.store == "redis" else note.title


def _cells(found: Figures, peer: str) -> list[str]:
    rates = [found.get((peer, work)) for work in COLUMNS]
    p50, p99 = found.get((peer, "pickup_p50")), found.get((peer, "pickup_p99"))
    return [
        *("-" if rate is None else f"{rate.median:,.0f}" for rate in rates),
        "-" if p50 is None or p99 is None else f"{p50.median:.1f} / {p99.median:.1f}",
    ]


def written(text: str, made: str) -> str:
    """Return the text with what stands between the markers replaced."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    return f"{before}{begin}\n\n{made}\n\n{end}{after}" if begin and end else text


def main(arguments: list[str], readme: Path = README, records: Path = RECORDS) -> int:
    folder = newest(records)
    if folder is None:
        return 0
    text = readme.read_text()
    wanted = written(text, comparison(read(folder), f"bench/records/{folder.name}"))
    if "--check" in arguments:
        if wanted != text:
            print(f"{readme.name} is out of date: run `python -m bench.table`", file=sys.stderr)
        return int(wanted != text)
    if wanted != text:
        readme.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
