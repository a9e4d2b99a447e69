"""Table: write the README's comparison from the newest record with every peer and workload.

    python -m bench.table            write it between the markers
    python -m bench.table --check    exit 1 when it is out of date

Does nothing when the README has no markers, or when there is no such record.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bench.aggregate import SERVER_CPU, WORKER_CPU, Aggregates, aggregate, per_job, results
from bench.install import ROOT
from bench.record import RECORDS, Record, in_order, newest, read
from bench.report import cost_cell, multiple, table
from tools.generated_file import replace_between, write_or_check

README = ROOT / "README.md"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
COLUMNS = {
    "enqueue_bulk": "bulk enqueue/s",
    "enqueue_single": "single enqueue/s",
    "drain_1": "drained/s, 1 process",
    "drain_2": "2 processes",
}
CPU_COLUMN = "CPU per drained job, µs: server + worker"
COMPARED = ("graphile_worker", "pgqueuer")


def comparison(record: Record, where: str) -> str:
    """Make the table, and the line that names its source."""
    aggregates = aggregate(record.measurements)
    with_cpu = ("howdah", per_job("drain_1", SERVER_CPU)) in aggregates
    rows = [
        [
            _name(record, peer),
            *_rates(aggregates, peer),
            *[cost_cell(aggregates, peer, "drain_1", [SERVER_CPU, WORKER_CPU])] * with_cpu,
            _pickup(aggregates, peer),
            record.peers[peer].keeps,
        ]
        for peer in in_order(record.peers)
    ]
    head = [
        "",
        *COLUMNS.values(),
        *[CPU_COLUMN] * with_cpu,
        "pickup p50 / p99, ms",
        "keeps of a finished job",
    ]
    machine = record.machine
    turns = max(measurement.turn for measurement in record.measurements)
    how = "One run" if turns == 1 else f"Medians of up to {turns} turns in one run"
    source = (
        f"{how} on {machine['cores']} cores ({machine['cpu']}), PostgreSQL"
        f" {record.postgres['version']}, every commit on disk; Redis writes to disk once a second."
        f" Settings, spread and raw numbers: [{where}]({where}/summary.md)."
    )
    when = "" if record.quiet else " Drains began straight after the load."
    return f"{table(head, rows)}\n\n{_multiples(record)}{source}{when}"


def _multiples(record: Record) -> str:
    """Say how much faster howdah drains than some peers, where enough turns were measured."""
    by_turn = results(record.measurements)
    multiples = {peer: multiple(by_turn, peer, "drain_1") for peer in COMPARED}
    sentences = [
        f"{shown} {record.peers[peer].title}'s" for peer, shown in multiples.items() if "(" in shown
    ]
    if not sentences:
        return ""
    return f"howdah's drain by one process, with its 95 % interval: {', '.join(sentences)}.\n\n"


def _name(record: Record, peer: str) -> str:
    note = record.peers[peer]
    return f"{note.title} on Redis" if note.store == "redis" else note.title


def _rates(aggregates: Aggregates, peer: str) -> list[str]:
    rates = [aggregates.get((peer, workload)) for workload in COLUMNS]
    return ["-" if rate is None else f"{rate.median:,.0f}" for rate in rates]


def _pickup(aggregates: Aggregates, peer: str) -> str:
    p50, p99 = aggregates.get((peer, "pickup_p50")), aggregates.get((peer, "pickup_p99"))
    return "-" if p50 is None or p99 is None else f"{p50.median:.1f} / {p99.median:.1f}"


def main(arguments: list[str], readme: Path = README, records: Path = RECORDS) -> int:
    folder = newest(records)
    if folder is None:
        return 0
    made = comparison(read(folder), f"bench/records/{folder.name}")
    text = replace_between(readme.read_text(encoding="utf-8"), BEGIN, END, f"\n\n{made}\n\n")
    return write_or_check({readme: text}, arguments, "python -m bench.table")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
