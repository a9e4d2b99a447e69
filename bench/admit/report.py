"""Report: write a record as Markdown. It is printed at the end of a run and kept as summary.md."""

from __future__ import annotations

import statistics

from bench.admit.bars import BARS
from bench.admit.peers import CONTENDERS, Contender
from bench.admit.record import AdmitRecord
from bench.admit.rules import COMPARED, LIMITED, PLAIN, RATED_PEERS, Rule
from bench.aggregate import Results
from bench.machine import describe
from bench.report import TRIAL, problem_list, table, targets
from bench.targets import ratio

DRAIN_HEAD = ["", "jobs/s", "howdah to it", "server + worker CPU, µs", "jobs/s of 1 ms jobs"]
EXACT_HEAD = ["most at once", "order violations"]

HOW = """\
Payloads have 100 bytes and a key. Every measurement has a new database, and begins on a quiet
server: vacuumed, analysed, after a checkpoint. A drain is timed from the first call of a handler,
which does nothing, until no job is unsettled, and counts only if every job ran once. Steps take
short turns, and ratios are taken within a turn. Jobs of 1 ms are drained by two processes, and were
enqueued one by one, in order. What ran at once at most, and which jobs began before one that was
enqueued earlier, is read from the logs of the handlers. Beside a snapshot, a database first drains
until the snapshot was held for its time, and then takes turns with a database without one. A rate
is measured with two workers, from `claimed_at`; those of peers from the logs of their handlers."""

WHAT_REACHED_MEANS = """\
A target is reached when the nearer end of its 95 % interval reaches it. Where every value counts,
the interval is from the lowest to the highest."""


def report(record: AdmitRecord) -> str:
    results = record.results()
    parts = [
        f"# Keys, order, limits and rates, {record.date}",
        *([TRIAL] * record.trial),
        "\n".join(f"- {line}" for line in _environment(record)),
        "## Targets",
        WHAT_REACHED_MEANS,
        targets(results, BARS),
        "## howdah's drains",
        own_drains(results),
        "## Peers",
        peers(results),
        *problem_list(record.problems()),
        *_skipped(record),
        "## Settings",
        _settings(record),
        "## How it was measured",
        HOW,
    ]
    return "\n\n".join(parts) + "\n"


def _environment(record: AdmitRecord) -> list[str]:
    sizes = ", ".join(f"{name} {size:,g}" for name, size in record.sizes.items())
    return [
        *describe(record.command, record.commit, record.machine, record.postgres),
        f"sizes: {sizes}",
    ]


def _skipped(record: AdmitRecord) -> list[str]:
    if not record.skipped:
        return []
    lines = [f"- **{row} was skipped**: {reason}" for row, reason in record.skipped.items()]
    return ["## What this code cannot run", "\n".join(lines)]


def own_drains(results: Results) -> str:
    rows = [
        [
            rule.title,
            _median(results, "howdah", f"drain_{rule.name}.rate"),
            _cpu(results, "howdah", rule),
            _median(results, "howdah", f"drain_{rule.name}.wal"),
            _left(results, rule),
        ]
        for rule in (PLAIN, *LIMITED)
    ]
    head = ["", "jobs/s", "server + worker CPU, µs", "WAL, bytes", "beside a snapshot"]
    return table(head, rows)


def peers(results: Results) -> str:
    """Make a table for each rule that peers have too."""
    parts = [
        f"### {rule.title[0].upper()}{rule.title[1:]}\n\n{_compared(results, rule)}"
        for rule in COMPARED
    ]
    title = f"### A rate of {RATED_PEERS.slots}/s"
    return "\n\n".join([*parts, f"{title}\n\n{_rates(results)}"])


def _compared(results: Results, rule: Rule) -> str:
    exact = EXACT_HEAD[: 2 if rule.kind == "ordered" else 1]
    rows = [
        [
            contender.peer.title,
            *_drain_cells(results, contender, rule),
            *(_most(results, contender, rule, name) for name in exact),
            _how(contender, rule),
        ]
        for contender in CONTENDERS
    ]
    return table([*DRAIN_HEAD, *exact, "how"], rows)


def _drain_cells(results: Results, contender: Contender, rule: Rule) -> list[str]:
    if rule.name not in contender.offers:
        return ["has none", "-", "-", "-"]
    name = contender.peer.name
    return [
        _median(results, name, f"drain_{rule.name}.rate"),
        _multiple(results, name, rule),
        _cpu(results, name, rule),
        _median(results, name, f"check_{rule.name}.rate"),
    ]


def _multiple(results: Results, name: str, rule: Rule) -> str:
    row = f"drain_{rule.name}.rate"
    measured = ratio(results.get(("howdah", row), {}), results.get((name, row), {}))
    if name == "howdah" or measured is None:
        return "-"
    bounds = f" ({measured.bounds[0]:.2f}-{measured.bounds[1]:.2f})" if measured.bounds else ""
    return f"{measured.median:,.2f}x{bounds}"


def _most(results: Results, contender: Contender, rule: Rule, column: str) -> str:
    name = {"most at once": "most_at_once", "order violations": "order_violations"}[column]
    values = results.get((contender.peer.name, f"check_{rule.name}.{name}"))
    return f"{max(values.values()):,.0f}" if values else "-"


def _how(contender: Contender, rule: Rule) -> str:
    offer = contender.offers.get(rule.name)
    return offer.how if offer else contender.lacks.get(rule.name, "")


def _rates(results: Results) -> str:
    row = f"check_{RATED_PEERS.name}"
    rows = [
        [
            contender.peer.title,
            *(
                [
                    _median(results, contender.peer.name, f"{row}.{value}")
                    for value in ("mean", "most_in_a_second", "most_above")
                ]
                if RATED_PEERS.name in contender.offers
                else ["has none", "-", "-"]
            ),
            _how(contender, RATED_PEERS),
        ]
        for contender in CONTENDERS
    ]
    head = ["", "starts/s", "most in a second", "most above the rate, in any window", "how"]
    return table(head, rows)


def _median(results: Results, peer: str, name: str) -> str:
    values = results.get((peer, name))
    return f"{statistics.median(values.values()):,.0f}" if values else "-"


def _cpu(results: Results, peer: str, rule: Rule) -> str:
    costs = [
        results.get((peer, f"drain_{rule.name}.{cost}")) for cost in ("server_cpu", "worker_cpu")
    ]
    return " + ".join(f"{statistics.median(cost.values()):,.1f}" if cost else "-" for cost in costs)


def _left(results: Results, rule: Rule) -> str:
    held = results.get(("howdah", f"snapshot_{rule.name}.held"), {})
    free = results.get(("howdah", f"snapshot_{rule.name}.free"), {})
    measured = ratio(held, free)
    return f"{measured.median:.2f}x" if measured else "-"


def _settings(record: AdmitRecord) -> str:
    lines: list[str] = []
    for contender in CONTENDERS:
        if (note := record.peers.get(contender.peer.name)) is None:
            continue
        versions = ", ".join(f"{name} {version}" for name, version in note.versions.items())
        options = {**contender.peer.options}
        own = "; ".join(
            f"{rule}: {dict(offer.options)}"
            for rule, offer in contender.offers.items()
            if offer.options
        )
        lines.append(
            f"- **{note.title}** ({versions or 'this checkout'}): {note.settings};"
            f" here {options}{'; ' + own if own else ''}."
        )
    return "\n".join(lines)
