"""Report: write a record as Markdown. It is printed at the end of a run and kept as summary.md.

Comes after   record.py and aggregate.py
"""

from __future__ import annotations

from bench.aggregate import Aggregate, Aggregates, aggregate
from bench.machine import describe
from bench.record import Record, in_order
from bench.targets import TARGETS
from bench.workloads import WORKLOADS

PICKUPS = ("pickup_p50", "pickup_p95", "pickup_p99")
RATES = tuple(name for name, workload in WORKLOADS.items() if workload.kind != "pickup")


def report(record: Record) -> str:
    aggregates = aggregate(record.measurements)
    parts = [
        f"# Benchmark of {record.date}",
        *(
            ["**A trial: it shows that the benchmark works, not how fast anything is.**"]
            * record.trial
        ),
        _environment(record),
        "## Jobs per second: median (lowest to highest), and howdah's multiple of it",
        rates(record, aggregates),
        "## Pickup when idle, in milliseconds",
        pickups(record, aggregates),
        "## Targets",
        targets(aggregates),
        *_problems(record),
        "## Settings",
        _settings(record),
        "## How it was measured",
        HOW,
    ]
    return "\n\n".join(parts) + "\n"


HOW = """\
Payloads have 100 bytes, and handlers do nothing. Peers take turns, and another one is first each
time. A repetition has three turns of single enqueues, of drains by one and by 16 processes and of
pickups, and one turn of everything else. Every measurement has a new database and begins after a
checkpoint. A drain is timed from the first call of a handler until the store has no unsettled job.
It counts only if every job ran exactly once. Slow peers drain fewer jobs (see record.json). Redis
writes to the disk once a second, PostgreSQL with every commit: the two do not promise the same."""


def rates(record: Record, aggregates: Aggregates) -> str:
    """Make the table of rates: one row per peer, one column per workload."""
    names = [name for name in RATES if any((peer, name) in aggregates for peer in record.peers)]
    rows = [
        [record.peers[peer].title, *(_rate(aggregates, peer, name) for name in names)]
        for peer in in_order(record.peers)
    ]
    return table(["", *(WORKLOADS[name].title for name in names)], rows)


def _rate(aggregates: Aggregates, peer: str, workload: str) -> str:
    rate = aggregates.get((peer, workload))
    if rate is None:
        return "-"
    ours = aggregates.get(("howdah", workload))
    multiple = "" if ours is None or peer == "howdah" else f" · {ours.median / rate.median:.1f}x"
    return f"{rate.median:,.0f} ({rate.low:,.0f}-{rate.high:,.0f}){multiple}"


def pickups(record: Record, aggregates: Aggregates) -> str:
    rows = [
        [record.peers[peer].title, *(_pickup(aggregates.get((peer, name))) for name in PICKUPS)]
        for peer in in_order(record.peers)
        if (peer, PICKUPS[0]) in aggregates
    ]
    return table(["", "p50", "p95", "p99"], rows)


def _pickup(times: Aggregate | None) -> str:
    return "-" if times is None else f"{times.median:.2f} ({times.low:.2f}-{times.high:.2f})"


def targets(aggregates: Aggregates) -> str:
    rows: list[list[str]] = []
    for target in TARGETS:
        ratio = target.ratio(aggregates)
        measured = "not measured" if ratio is None else f"{ratio:.2f}{target.unit}"
        outcome = "reached" if target.reached(aggregates) else "not reached"
        wanted = f"{target.sense} {target.bound:g}{target.unit}"
        rows.append([target.title, wanted, measured, "-" if ratio is None else outcome])
    return table(["howdah", "wanted", "measured", ""], rows)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Make a table in Markdown. The first column is text, the others are numbers."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [
        " | ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, rule, *rows)
    ]
    return "\n".join(f"| {line} |" for line in lines)


def _environment(record: Record) -> str:
    lines = describe(record.command, record.commit, record.machine, record.postgres)
    if redis := record.redis:
        lines.append(f"Redis {redis['version']}: append-only file, fsync {redis['appendfsync']}")
    return "\n".join(f"- {line}" for line in lines)


def _problems(record: Record) -> list[str]:
    problems = record.problems()
    if not problems:
        return []
    return ["## What could not be measured", "\n".join(f"- {problem}" for problem in problems)]


def _settings(record: Record) -> str:
    lines: list[str] = []
    for peer in in_order(record.peers):
        note = record.peers[peer]
        versions = ", ".join(f"{name} {version}" for name, version in note.versions.items())
        lines.append(
            f"- **{note.title}** ({versions or 'this checkout'}; {note.store}): {note.settings}."
            f" Keeps of a finished job: {note.keeps}."
        )
    return "\n".join(lines)
