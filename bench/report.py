"""Report: a record as text. Printed at the end of a run, and kept beside it as summary.md.

Comes after   record.py and figures.py
Comes before  plot.py and table.py, which show parts of it elsewhere
"""

from __future__ import annotations

from bench.figures import Figure, Figures, figures
from bench.record import Record, in_order
from bench.targets import TARGETS
from bench.works import WORKS

PICKUPS = ("pickup_p50", "pickup_p95", "pickup_p99")
RATES = tuple(name for name, work in WORKS.items() if work.kind != "pickup")


def report(record: Record) -> str:
    found = figures(record.measurements)
    parts = [
        f"# Benchmark of {record.date}",
        *(["**A trial: it shows that everything works. Its numbers say little.**"] * record.trial),
        _ground(record),
        "## Jobs per second: median (lowest to highest), and howdah's multiple of it",
        rates(record, found),
        "## Pickup when idle, in milliseconds",
        pickups(record, found),
        "## Targets",
        targets(found),
        *_problems(record),
        "## Settings",
        _settings(record),
        "## How it was measured",
        HOW,
    ]
    return "\n\n".join(parts) + "\n"


HOW = """\
Payloads of 100 bytes, handlers that do nothing, finished jobs kept as each peer keeps them. Peers
take turns, in another order each time, three turns per repetition in single enqueues, drains by one
process and by 16, and pickups, one in all else; every measurement has a fresh database and begins
after a checkpoint. A drain is timed from the first call of a handler until the store says that
every job is settled; it counts only if every job ran exactly once. Slow peers drain fewer jobs (see
record.json). Redis reaches the disk once a second, PostgreSQL with every commit: the two do not
promise the same."""


def rates(record: Record, found: Figures) -> str:
    """Make the table of rates: one row per peer, one column per work."""
    works = [work for work in RATES if any((peer, work) in found for peer in record.peers)]
    rows = [
        [record.peers[peer].title, *(_rate(found, peer, work) for work in works)]
        for peer in in_order(record.peers)
    ]
    return table(["", *(WORKS[work].title for work in works)], rows)


def _rate(found: Figures, peer: str, work: str) -> str:
    one = found.get((peer, work))
    if one is None:
        return "-"
    ours = found.get(("howdah", work))
    times = "" if ours is None or peer == "howdah" else f" · {ours.median / one.median:.1f}x"
    return f"{one.median:,.0f} ({one.low:,.0f}-{one.high:,.0f}){times}"


def pickups(record: Record, found: Figures) -> str:
    rows = [
        [record.peers[peer].title, *(_pickup(found.get((peer, name))) for name in PICKUPS)]
        for peer in in_order(record.peers)
        if (peer, PICKUPS[0]) in found
    ]
    return table(["", "p50", "p95", "p99"], rows)


def _pickup(one: Figure | None) -> str:
    return "-" if one is None else f"{one.median:.2f} ({one.low:.2f}-{one.high:.2f})"


def targets(found: Figures) -> str:
    rows: list[list[str]] = []
    for target in TARGETS:
        ratio = target.ratio(found)
        said = "not measured" if ratio is None else f"{ratio:.2f}{target.unit}"
        outcome = "reached" if target.reached(found) else "not reached"
        wanted = f"{target.sense} {target.bound:g}{target.unit}"
        rows.append([target.title, wanted, said, "-" if ratio is None else outcome])
    return table(["howdah", "wanted", "measured", ""], rows)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Make a table in Markdown; the first column is words, the others are numbers."""
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


def _ground(record: Record) -> str:
    machine, postgres, redis = record.machine, dict(record.postgres), record.redis
    version = postgres.pop("version")
    lines = [
        f"command: `{record.command}`",
        f"howdah: commit {record.commit}, Python {machine['python']}",
        "machine: {cores} cores ({cpu}), {memory}, {system}, {kernel}".format(**machine),
        f"PostgreSQL {version}: " + ", ".join(f"{name} {postgres[name]}" for name in postgres),
    ]
    if redis:
        lines.append(f"Redis {redis['version']}: append-only file, fsync {redis['appendfsync']}")
    return "\n".join(f"- {line}" for line in lines)


def _problems(record: Record) -> list[str]:
    found = record.problems()
    if not found:
        return []
    return ["## What could not be measured", "\n".join(f"- {problem}" for problem in found)]


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
