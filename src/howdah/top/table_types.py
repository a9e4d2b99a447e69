"""Types: every job type, those with a problem first."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from howdah.observe import TypeNow
from howdah.states import State
from howdah.top import words
from howdah.top.heart import Seen
from howdah.top.table import Column, Table


class TypesTable(Table[TypeNow]):
    """One row per type."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("TYPE", share=1),
        Column("WAITING", 8, right=True),
        Column("OLDEST", 6, right=True),
        Column("LATER", 7, right=True, wide=100),
        Column("RUNNING", 7, right=True),
        Column("JOBS/S", 7, right=True),
        Column("FAILED", 6, right=True),
        Column("PICKUP P99", 10, right=True, wide=110),
        Column("RUN P50", 7, right=True, wide=120),
        Column("RUN P99", 7, right=True),
        Column("DONE TODAY", 10, right=True, wide=130),
        Column("LAST HOUR", 20, wide=150),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "want('requeue')", "Requeue"),
        Binding("p", "want('pause')", "Pause"),
        Binding("w", "want('why')", "Why"),
        Binding("enter", "select_cursor", "Details"),
    ]

    def key(self, row: TypeNow) -> str:
        return row.job_type

    def cells(self, row: TypeNow) -> dict[str, str | Text]:
        return {
            "WAITING": Text(str(row.waiting) if row.waiting else "·", "" if row.waiting else "dim"),
            "OLDEST": words.age(row.oldest),
            "LATER": str(row.scheduled) if row.scheduled else "",
            "RUNNING": Text(f"{row.running + row.claimed or '·':>}", _busy(row)),
            "JOBS/S": words.rate(row.per_second),
            "FAILED": Text(words.share(row.failure_rate), words.BAD),
            "PICKUP P99": words.short(row.pickup.p99),
            "RUN P50": words.short(row.run.p50),
            "RUN P99": words.short(row.run.p99),
            "DONE TODAY": f"{row.finished_today.get(State.COMPLETED, 0):,}",
            "LAST HOUR": Text(_trend(row), words.BUSY),
        }

    def drawn(self, row: TypeNow, title: str, width: int) -> Text | None:
        if title != "TYPE":
            return None
        mark, style = _mark(row)
        name = words.cut(row.job_type, width - len(mark))
        return Text.assemble(name, (mark, style), no_wrap=True)


def rows(seen: Seen) -> list[TypeNow]:
    """Return the types, those with a problem first."""
    if seen.overview is None:
        return []
    troubled = {problem.job_type for problem in seen.problems}
    return sorted(seen.overview.types, key=lambda one: (one.job_type not in troubled, one.job_type))


def _busy(row: TypeNow) -> str:
    return words.BUSY if row.running or row.claimed else "dim"


def _mark(row: TypeNow) -> tuple[str, str]:
    """Say what keeps the type from running, behind its name."""
    if row.paused is not None:
        return " paused", words.WARN
    if not row.listeners and row.waiting:
        return " no worker", words.BAD
    return "", ""


def _trend(row: TypeNow) -> str:
    return words.trend([one.completed + one.failed + one.retried for one in row.trend], 20)
