"""Findings: what bad days, memory and growth leave behind, as one kind of record.

Comes after   cases.py, which runs them
Comes before  lines.py and limits.py, which show it

A finding is one figure with its bound; a curve is the raw figures behind it. Both are kept in
records/<date>-<what>/findings.json, with the command, the machine and the settings. A shortened run
says so and can meet no target: what is small, or short, proves nothing about what is large.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from bench.record import RECORDS
from bench.report import table

FILE = "findings.json"
Sense = Literal["at least", "at most", "below"]
Point = tuple[float, float]


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One figure of a case, and what it should be."""

    case: str
    title: str
    measured: float
    sense: Sense
    bound: float
    unit: str = "x"

    @property
    def within(self) -> bool:
        compare = {"at least": operator.ge, "at most": operator.le, "below": operator.lt}
        return compare[self.sense](self.measured, self.bound)

    @property
    def wanted(self) -> str:
        return f"{self.sense} {self.bound:g}{self.unit}"


class Curve(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Raw figures: named lines of points, all over the same axis."""

    case: str
    title: str
    across: str  # what x is
    upward: str  # what y is
    lines: dict[str, list[Point]]
    logarithmic: bool = False  # the x axis


class Seen(msgspec.Struct, frozen=True):
    """What one case gave."""

    findings: list[Finding] = []
    curves: list[Curve] = []


class Account(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run, as it is kept."""

    what: str
    shortened: bool
    command: str
    date: str
    commit: str
    machine: dict[str, str]
    postgres: dict[str, str]
    findings: list[Finding]
    curves: list[Curve]
    problems: dict[str, str] = msgspec.field(default_factory=dict[str, str])  # by case

    def verdict(self, finding: Finding) -> str:
        if self.shortened:
            return "shortened run"
        return "met" if finding.within else "missed"


def write(account: Account, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(account), indent=1)
    (folder / FILE).write_bytes(text + b"\n")


def read(folder: Path) -> Account:
    return msgspec.json.decode((folder / FILE).read_bytes(), type=Account)


def kept(records: Path = RECORDS) -> list[tuple[Account, Path]]:
    """Return all full runs that are kept, the newest first."""
    found = [(read(path.parent), path.parent) for path in records.glob(f"*/{FILE}")]
    whole = [(account, folder) for account, folder in found if not account.shortened]
    return sorted(whole, key=lambda one: (one[0].date, one[1].name), reverse=True)


def report(account: Account) -> str:
    """Say in Markdown what was found."""
    parts = [
        f"# {account.what.capitalize()}, {account.date}",
        *(["**A shortened run: it shows that everything works, and meets no target.**"]
          * account.shortened),
        ground(account),
        *([verdicts([(account, one) for one in account.findings])] * bool(account.findings)),
        *([_curves(account.curves)] * bool(account.curves and not account.findings)),
        *_problems(account),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def ground(account: Account) -> str:
    machine, postgres = account.machine, dict(account.postgres)
    version = postgres.pop("version")
    lines = [
        f"command: `{account.command}`",
        f"howdah: commit {account.commit}, Python {machine['python']}",
        "machine: {cores} cores ({cpu}), {memory}, {system}, {kernel}".format(**machine),
        f"PostgreSQL {version}: " + ", ".join(f"{name} {postgres[name]}" for name in postgres),
    ]
    return "\n".join(f"- {line}" for line in lines)


def verdicts(found: Iterable[tuple[Account, Finding]]) -> str:
    rows = [
        [one.title, one.wanted, f"{one.measured:,.2f}{one.unit}", account.verdict(one)]
        for account, one in found
    ]
    return table(["", "wanted", "measured", ""], rows)


def _curves(curves: list[Curve]) -> str:
    return "\n\n".join(
        f"## {curve.title}\n\n" + as_table(curve, list(curve.lines)) for curve in curves
    )


def as_table(curve: Curve, names: list[str]) -> str:
    """Make a table of a curve's lines; repeated measurements of one point become their median."""
    columns = {name: medians(curve.lines[name]) for name in names}
    xs = sorted({x for column in columns.values() for x in column})
    rows = [
        [f"{x:,.0f}", *(f"{column[x]:,.0f}" if x in column else "-" for column in columns.values())]
        for x in xs
    ]
    return table([curve.across, *(f"{name}, {curve.upward}" for name in names)], rows)


def medians(points: Iterable[Point]) -> dict[float, float]:
    values: dict[float, list[float]] = {}
    for x, y in points:
        values.setdefault(x, []).append(y)
    return {x: sorted(ys)[(len(ys) - 1) // 2] for x, ys in sorted(values.items())}


def _problems(account: Account) -> list[str]:
    if not account.problems:
        return []
    lines = [f"- {case}: {problem}" for case, problem in account.problems.items()]
    return ["## What could not be measured", "\n".join(lines)]
