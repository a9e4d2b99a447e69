"""Types: all job types; those with a problem come first."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from howdah.checks.queue_names import DEFAULT_QUEUE
from howdah.observe import TypeNow
from howdah.states import State
from howdah.top import formatting
from howdah.top.poller import Snapshot
from howdah.top.table import Column, Table


class TypesTable(Table[TypeNow]):
    """One row per type."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("TYPE", share=1),
        Column("WAITING", 8, right=True),
        Column("OLDEST", 6, right=True),
        Column("LATER", 7, right=True, min_screen=100),
        Column("LIMITED", 7, right=True, min_screen=90),  # wait for their key or limit
        Column("RUNNING", 7, right=True),
        Column("JOBS/S", 7, right=True),
        Column("FAILED", 6, right=True),
        Column("PICKUP P99", 10, right=True, min_screen=110),
        Column("RUN P50", 7, right=True, min_screen=120),
        Column("RUN P99", 7, right=True),
        Column("DONE TODAY", 10, right=True, min_screen=140),
        Column("QUEUE", 12, min_screen=150),
        Column("LAST HOUR", 20, min_screen=160),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "request('requeue')", "Requeue"),
        Binding("p", "request('pause')", "Pause"),
        Binding("w", "request('why')", "Why"),
        Binding("enter", "select_cursor", "Details"),
    ]

    def key(self, row: TypeNow) -> str:
        return row.job_type

    def cells(self, row: TypeNow) -> dict[str, str | Text]:
        return {
            "QUEUE": row.queue if row.queue != DEFAULT_QUEUE else Text("default", "dim"),
            "WAITING": Text(str(row.waiting) if row.waiting else "·", "" if row.waiting else "dim"),
            "OLDEST": formatting.age(row.oldest),
            "LATER": str(row.scheduled) if row.scheduled else "",
            "LIMITED": _limited(row),
            "RUNNING": Text(f"{row.running + row.claimed or '·':>}", _busy(row)),
            "JOBS/S": formatting.rate(row.per_second),
            "FAILED": Text(formatting.share(row.failure_rate), formatting.BAD),
            "PICKUP P99": formatting.short(row.pickup.p99),
            "RUN P50": formatting.short(row.run.p50),
            "RUN P99": formatting.short(row.run.p99),
            "DONE TODAY": f"{row.finished_today.get(State.COMPLETED, 0):,}",
            "LAST HOUR": Text(_trend(row), formatting.BUSY),
        }

    def draw_cell(self, row: TypeNow, title: str, width: int) -> Text | None:
        if title != "TYPE":
            return None
        mark, style = _mark(row)
        name = formatting.cut(row.job_type, width - len(mark))
        return Text.assemble(name, (mark, style), no_wrap=True)


def rows(snapshot: Snapshot) -> list[TypeNow]:
    """Return the types, those with a problem first."""
    if snapshot.overview is None:
        return []
    with_problem = {problem.job_type for problem in snapshot.problems}
    return sorted(
        snapshot.overview.types, key=lambda row: (row.job_type not in with_problem, row.job_type)
    )


def _busy(row: TypeNow) -> str:
    return formatting.BUSY if row.running or row.claimed else "dim"


def _mark(row: TypeNow) -> tuple[str, str]:
    """Return what keeps the type from running, to be shown after its name."""
    if row.paused is not None:
        return " paused", formatting.WARN
    if not row.workers and row.waiting:
        return " no worker", formatting.BAD
    return "", ""


def _limited(row: TypeNow) -> str:
    """Count the jobs that wait for a slot of their key, or for their limit."""
    count = row.waiting_for_key + row.waiting_for_limit
    return str(count) if count or count.more else ""


def _trend(row: TypeNow) -> str:
    return formatting.trend(
        [minute.completed + minute.failed + minute.retried for minute in row.trend], 20
    )
