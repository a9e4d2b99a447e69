"""Failures: jobs that failed of late, the same errors together, the latest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from howdah.observe import FailureGroup
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
        return f"{row.group.job_type}\n{row.group.fingerprint}"

    def cells(self, row: Failed) -> dict[str, str | Text]:
        group = row.group
        return {
            "TYPE": group.job_type,
            "JOBS": Text(f"{group.jobs:,}", words.BAD),
            "LAST": words.age(row.last),
            "FIRST": words.age(row.first),
            "ERROR": group.example,
            "LAST DAY": Text(words.trend(group.trend, 24), words.BAD),
        }


def rows(seen: Seen) -> list[Failed]:
    """Return the groups, with their ages by the server's clock."""
    if seen.failures is None or seen.overview is None:
        return []
    now = seen.overview.at
    return [Failed(one, now - one.first_at, now - one.last_at) for one in seen.failures.groups]
