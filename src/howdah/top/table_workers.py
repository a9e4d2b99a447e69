"""Workers: who is alive, how busy each is, and who fell silent."""

from __future__ import annotations

from typing import Any, ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from howdah.observe import WorkerNow
from howdah.top import words
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
        Column("VERSION", 9, wide=100),
        Column("HOST", share=1, wide=120),
        Column("TYPES", share=2, wide=140),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "want('drain')", "Drain"),
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
            "BEAT": words.age(row.silent_for),
            "UP": words.short(up),
            "VERSION": str(row.info.get("version", "")),
            "HOST": str(row.info.get("host", "")),
            "TYPES": ", ".join(types_of(row)),
        }


def state(worker: WorkerNow) -> Text:
    """Word how a worker is."""
    if not worker.beats:
        return Text("foreign", words.WARN)
    if not worker.alive:
        return Text("silent", words.BAD)
    return Text("draining", words.WARN) if worker.draining else Text("alive", words.GOOD)


def types_of(worker: WorkerNow) -> list[str]:
    """Return the types that a worker says it knows; a foreign one may say anything."""
    said: Any = worker.info.get("job_types")
    return [str(one) for one in said] if isinstance(said, list) else []  # pyright: ignore
