"""Failures: jobs that failed of late or are being retried, the same errors together."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from howdah.observe import FailureGroup
from howdah.text.printable import one_line
from howdah.top import words
from howdah.top.heart import Seen
from howdah.top.table import Column, Table


@dataclass(frozen=True)
class Failed:
    """A group of failures, and how long ago it began and went on."""

    group: FailureGroup
    first: timedelta
    last: timedelta


class FailuresTable(Table[Failed]):
    """One row per group."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("TYPE", share=1),
        Column("JOBS", 6, right=True),
        Column("LAST", 5, right=True),
        Column("FIRST", 5, right=True, wide=100),
        Column("ERROR", share=2),
        Column("LAST DAY", 24, wide=130),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "want('requeue')", "Requeue all"),
        Binding("p", "want('pause')", "Pause type"),
        Binding("w", "want('why')", "Why"),
        Binding("enter", "select_cursor", "Details"),
    ]

    def key(self, row: Failed) -> str:
        group = row.group
        return f"{group.job_type}\n{group.fingerprint}\n{'retrying' if group.retrying else ''}"

    def cells(self, row: Failed) -> dict[str, str | Text]:
        group = row.group
        style = words.WARN if group.retrying else words.BAD
        return {
            "TYPE": group.job_type,
            "JOBS": Text(f"{group.jobs:,}", style),
            "LAST": words.age(row.last),
            "FIRST": words.age(row.first),
            "ERROR": _error(group),
            "LAST DAY": Text(words.trend(group.trend, 24), words.BAD),
        }


def _error(group: FailureGroup) -> str | Text:
    """Return the error, with a word before it where the jobs are tried again."""
    if not group.retrying:
        return group.example
    return Text.assemble(("retrying  ", words.WARN), one_line(group.example))


def rows(seen: Seen) -> list[Failed]:
    """Return the groups, with their ages by the server's clock."""
    if seen.failures is None or seen.overview is None:
        return []
    now = seen.overview.at
    groups = [*seen.failures.groups, *seen.failures.retrying]
    return [Failed(one, now - one.first_at, now - one.last_at) for one in groups]
