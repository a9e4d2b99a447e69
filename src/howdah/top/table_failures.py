"""Failures: jobs that failed lately or are being retried, grouped by error."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from howdah.observe import FailureGroup
from howdah.text.printable import one_line
from howdah.top import formatting
from howdah.top.poller import Snapshot
from howdah.top.table import Column, Table


@dataclass(frozen=True)
class FailureRow:
    """A group of failures, and how long ago its first and last one were."""

    group: FailureGroup
    first: timedelta
    last: timedelta


class FailuresTable(Table[FailureRow]):
    """One row per group."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("TYPE", share=1),
        Column("JOBS", 6, right=True),
        Column("LAST", 5, right=True),
        Column("FIRST", 5, right=True, min_screen=100),
        Column("ERROR", share=2),
        Column("LAST DAY", 24, min_screen=130),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "request('requeue')", "Requeue all"),
        Binding("p", "request('pause')", "Pause type"),
        Binding("w", "request('why')", "Why"),
        Binding("enter", "select_cursor", "Details"),
    ]

    def key(self, row: FailureRow) -> str:
        group = row.group
        return f"{group.job_type}\n{group.fingerprint}\n{'retrying' if group.retrying else ''}"

    def cells(self, row: FailureRow) -> dict[str, str | Text]:
        group = row.group
        style = formatting.WARN if group.retrying else formatting.BAD
        return {
            "TYPE": group.job_type,
            "JOBS": Text(f"{group.jobs:,}", style),
            "LAST": formatting.age(row.last),
            "FIRST": formatting.age(row.first),
            "ERROR": _error(group),
            "LAST DAY": Text(formatting.trend(group.trend, 24), formatting.BAD),
        }


def _error(group: FailureGroup) -> str | Text:
    """Return the error, marked if the jobs are being retried."""
    if not group.retrying:
        return group.example
    return Text.assemble(("retrying  ", formatting.WARN), one_line(group.example))


def rows(snapshot: Snapshot) -> list[FailureRow]:
    """Return the groups; ages are measured by the server's clock."""
    if snapshot.failures is None or snapshot.overview is None:
        return []
    now = snapshot.overview.at
    groups = [*snapshot.failures.groups, *snapshot.failures.retrying]
    return [FailureRow(group, now - group.first_at, now - group.last_at) for group in groups]
