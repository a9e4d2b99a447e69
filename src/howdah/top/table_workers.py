"""Workers: which are alive, how busy each is, and which are silent."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from howdah.observe import WorkerNow
from howdah.top import formatting
from howdah.top.table import Column, Table


class WorkersTable(Table[WorkerNow]):
    """One row per worker."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("WORKER", share=1),
        Column("STATE", 12),
        Column("BUSY", 9, right=True),
        Column("HOLDS", 6, right=True),
        Column("BEAT", 5, right=True),
        Column("UP", 5, right=True),
        Column("VERSION", 9, min_screen=100),
        Column("HOST", share=1, min_screen=120),
        Column("TYPES", share=2, min_screen=140),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "request('drain')", "Drain"),
        Binding("enter", "select_cursor", "Details"),
    ]

    def key(self, row: WorkerNow) -> str:
        return row.id

    def cells(self, row: WorkerNow) -> dict[str, str | Text]:
        slots = row.info.get("slots")
        up = row.beat_at - row.started_at if row.beat_at and row.started_at else None
        return {
            "WORKER": row.id,
            "STATE": state(row),
            "BUSY": f"{row.info.get('running', 0)}/{slots}" if slots is not None else "",
            "HOLDS": f"{row.holds:,}",
            "BEAT": formatting.age(row.silent_for),
            "UP": formatting.short(up),
            "VERSION": str(row.info.get("version", "")),
            "HOST": str(row.info.get("host", "")),
            "TYPES": ", ".join(types_of(row)),
        }


def state(worker: WorkerNow) -> Text:
    """Return the state of a worker."""
    if not worker.beats:
        return Text("foreign", formatting.WARN)
    if not worker.alive:
        return Text("silent", formatting.BAD)
    return Text("draining", formatting.WARN) if worker.draining else Text("alive", formatting.GOOD)


def types_of(worker: WorkerNow) -> list[str]:
    """Return the types that a worker says it runs; a foreign worker may have stored anything."""
    types: Any = worker.info.get("job_types")
    return [str(name) for name in types] if isinstance(types, list) else []  # pyright: ignore
