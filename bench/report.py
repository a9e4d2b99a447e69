"""Report: write a record as Markdown. It is printed at the end of a run and kept as summary.md.

Comes after   record.py and aggregate.py
"""

from __future__ import annotations

from collections.abc import Iterable

from bench.aggregate import (
    SERVER_CPU,
    WAL,
    WORKER_CPU,
    Aggregate,
    Aggregates,
    Results,
    aggregate,
    per_job,
    results,
)
from bench.interval import Interval
from bench.machine import describe
from bench.record import PeerNote, Record, in_order
from bench.targets import TARGETS, Target, ratio
from bench.workloads import WORKLOADS

PICKUPS = ("pickup_p50", "pickup_p95", "pickup_p99")
RATES = tuple(name for name, workload in WORKLOADS.items() if workload.kind != "pickup")

TRIAL = "**A trial: it shows that the benchmark works, not how fast anything is.**"


def report(record: Record) -> str:
    aggregates, by_turn = aggregate(record.measurements), results(record.measurements)
    parts = [
        f"# Benchmark of {record.date}",
        *([TRIAL] * record.trial),
        _environment(record),
        "## Targets",
        "A target is reached when the nearer end of its 95 % interval reaches it.",
        targets(by_turn),
        "## Jobs per second: median (lowest to highest)",
        rates(record, aggregates),
        *_multiples(record, by_turn),
        *_costs(record, aggregates),
        "## Pickup when idle, in milliseconds",
        pickups(record, aggregates),
        *problem_list(record.problems()),
        "## Settings",
        settings(record.peers),
        "## How it was measured",
        HOW,
    ]
    return "\n\n".join(parts) + "\n"


HOW = """\
Payloads have 100 bytes, and handlers do nothing. Peers take short turns, and another one is first
each time. A peer that is too slow to be the best of any target takes every third turn. Every
measurement has a new database. Drains, the bare statements and pickups begin on a quiet server:
vacuumed, analysed, after a checkpoint, with no autovacuum at work. A drain is timed from the first
call of a handler until the store has no unsettled job. It counts only if every job ran exactly
once. Slow peers drain fewer jobs (see record.json). Redis writes to the disk once a second,
PostgreSQL with every commit: the two do not promise the same. docs/guides/comparison.md explains
how to read and to repeat this."""


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
    return "-" if rate is None else f"{rate.median:,.0f} ({rate.low:,.0f}-{rate.high:,.0f})"


def _multiples(record: Record, by_turn: Results) -> list[str]:
    """Make the table of howdah's multiples: one row per peer, one column per workload."""
    names = [
        name
        for name in RATES
        if ("howdah", name) in by_turn
        and any((peer, name) in by_turn for peer in record.peers if peer != "howdah")
    ]
    if not names:
        return []
    rows = [
        [record.peers[peer].title, *(multiple(by_turn, peer, name) for name in names)]
        for peer in in_order(record.peers)
        if peer != "howdah" and any((peer, name) in by_turn for name in names)
    ]
    return [
        "## howdah's multiple of these rates: median of the turns, 95 % interval",
        table(["", *(WORKLOADS[name].title for name in names)], rows),
    ]


def multiple(by_turn: Results, peer: str, workload: str) -> str:
    ours, theirs = by_turn.get(("howdah", workload), {}), by_turn.get((peer, workload), {})
    measured = ratio(ours, theirs)
    if measured is None:
        return "-"
    bounds = measured.bounds
    return f"{measured.median:.2f}x" + (f" ({bounds[0]:.2f}-{bounds[1]:.2f})" if bounds else "")


def _costs(record: Record, aggregates: Aggregates) -> list[str]:
    """Make the tables of what a job costs. Older records have none."""
    cpu = _cost_table(record, aggregates, [SERVER_CPU, WORKER_CPU])
    wal = _cost_table(record, aggregates, [WAL])
    return [
        *(["## CPU time per job in µs, median: server + workers or producer", cpu] if cpu else []),
        *(["## WAL per job in bytes, median", wal] if wal else []),
    ]


def _cost_table(record: Record, aggregates: Aggregates, costs: list[str]) -> str | None:
    names = [
        name
        for name in WORKLOADS
        if any((peer, per_job(name, costs[0])) in aggregates for peer in record.peers)
    ]
    rows = [
        [record.peers[peer].title, *(cost_cell(aggregates, peer, name, costs) for name in names)]
        for peer in in_order(record.peers)
        if any((peer, per_job(name, costs[0])) in aggregates for name in names)
    ]
    return table(["", *(WORKLOADS[name].title for name in names)], rows) if names else None


def cost_cell(aggregates: Aggregates, peer: str, workload: str, costs: list[str]) -> str:
    measured = [aggregates.get((peer, per_job(workload, cost))) for cost in costs]
    values = [_number(cost.median) for cost in measured if cost is not None]
    return " + ".join(values) if len(values) == len(costs) else "-"


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def pickups(record: Record, aggregates: Aggregates) -> str:
    rows = [
        [record.peers[peer].title, *(_pickup(aggregates.get((peer, name))) for name in PICKUPS)]
        for peer in in_order(record.peers)
        if (peer, PICKUPS[0]) in aggregates
    ]
    return table(["", "p50", "p95", "p99"], rows)


def _pickup(times: Aggregate | None) -> str:
    return "-" if times is None else f"{times.median:.2f} ({times.low:.2f}-{times.high:.2f})"


def targets(by_turn: Results, wanted_of_howdah: Iterable[Target] = TARGETS) -> str:
    rows: list[list[str]] = []
    for target in wanted_of_howdah:
        wanted = f"{target.sense} {target.bound:g}{target.unit}"
        measured = target.measured(by_turn)
        shown = ["not measured", "-", "-"] if measured is None else _verdict(target, measured)
        rows.append([target.title, wanted, *shown])
    return table(["howdah", "wanted", "measured", "95 % interval", ""], rows)


def _verdict(target: Target, measured: Interval) -> list[str]:
    median = f"{_value(measured.median)}{target.unit}"
    if measured.bounds is None:
        return [median, "-", "too few turns"]
    low, high = measured.bounds
    outcome = "reached" if target.reached(measured) else "not reached"
    return [median, f"{_value(low)}-{_value(high)}", outcome]


def _value(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}"


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


def problem_list(problems: list[str]) -> list[str]:
    if not problems:
        return []
    return ["## What could not be measured", "\n".join(f"- {problem}" for problem in problems)]


def settings(peers: dict[str, PeerNote]) -> str:
    """List the peers with their versions and settings."""
    lines: list[str] = []
    for peer in in_order(peers):
        note = peers[peer]
        versions = ", ".join(f"{name} {version}" for name, version in note.versions.items())
        lines.append(
            f"- **{note.title}** ({versions or 'this checkout'}; {note.store}): {note.settings}."
            f" Keeps of a finished job: {note.keeps}."
        )
    return "\n".join(lines)
