"""Case record: the results of a run of cases.

Comes after   cases.py, which runs the cases
Comes before  line_chart.py and limits.py, which show the results

A finding is one measured value with its bound. A curve holds the raw values. Both are kept in
records/<date>-<name>/findings.json, with the command, the machine and the settings. A shortened run
meets no target. The names in the file stay as they are: old records have to be readable.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from bench.machine import describe
from bench.record import RECORDS, write_json
from bench.report import table

FILE = "findings.json"
Sense = Literal["at least", "at most", "below"]
Point = tuple[float, float]


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One measured value of a case, and its bound."""

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
    """Raw values: named series of points, all on the same axes."""

    case: str
    title: str
    x_label: str = msgspec.field(name="across")
    y_label: str = msgspec.field(name="upward")
    series: dict[str, list[Point]] = msgspec.field(name="lines")
    logarithmic: bool = False  # the x axis


class CaseResult(msgspec.Struct, frozen=True):
    """The result of one case."""

    findings: list[Finding] = []
    curves: list[Curve] = []


class CaseRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The results of one run of a suite of cases."""

    suite: str = msgspec.field(name="what")
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


def write(record: CaseRecord, folder: Path) -> None:
    write_json(record, folder / FILE)


def read(folder: Path) -> CaseRecord:
    return msgspec.json.decode((folder / FILE).read_bytes(), type=CaseRecord)


def full_records(records: Path = RECORDS) -> list[tuple[CaseRecord, Path]]:
    """Return the records of all full runs with their folders, the newest first."""
    all_records = [(read(path.parent), path.parent) for path in records.glob(f"*/{FILE}")]
    full = [(record, folder) for record, folder in all_records if not record.shortened]
    return sorted(full, key=lambda entry: (entry[0].date, entry[1].name), reverse=True)


def report(record: CaseRecord) -> str:
    """Return the results as Markdown."""
    environment = describe(record.command, record.commit, record.machine, record.postgres)
    parts = [
        f"# {record.suite.capitalize()}, {record.date}",
        *(["**A shortened run: it shows that everything works, and meets no target.**"]
          * record.shortened),
        "\n".join(f"- {line}" for line in environment),
        *([verdicts([(record, finding) for finding in record.findings])] * bool(record.findings)),
        *([_curves(record.curves)] * bool(record.curves and not record.findings)),
        *_problems(record),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def verdicts(findings: Iterable[tuple[CaseRecord, Finding]]) -> str:
    rows = [
        [
            finding.title,
            finding.wanted,
            f"{finding.measured:,.2f}{finding.unit}",
            record.verdict(finding),
        ]
        for record, finding in findings
    ]
    return table(["", "wanted", "measured", ""], rows)


def _curves(curves: list[Curve]) -> str:
    return "\n\n".join(
        f"## {curve.title}\n\n" + as_table(curve, list(curve.series)) for curve in curves
    )


def as_table(curve: Curve, names: list[str]) -> str:
    """Make a table of a curve's series. A point that was measured repeatedly is its median."""
    columns = {name: medians(curve.series[name]) for name in names}
    xs = sorted({x for column in columns.values() for x in column})
    rows = [
        [f"{x:,.0f}", *(f"{column[x]:,.0f}" if x in column else "-" for column in columns.values())]
        for x in xs
    ]
    return table([curve.x_label, *(f"{name}, {curve.y_label}" for name in names)], rows)


def medians(points: Iterable[Point]) -> dict[float, float]:
    values: dict[float, list[float]] = {}
    for x, y in points:
        values.setdefault(x, []).append(y)
    return {x: sorted(ys)[(len(ys) - 1) // 2] for x, ys in sorted(values.items())}


def _problems(record: CaseRecord) -> list[str]:
    if not record.problems:
        return []
    lines = [f"- {case}: {problem}" for case, problem in record.problems.items()]
    return ["## What could not be measured", "\n".join(lines)]
