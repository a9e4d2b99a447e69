"""Running: the jobs in workers' hands, the longest at work first, with their progress.

Of a worker with very many jobs at once only the first are shown; `howdah jobs` lists all.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from howdah.observe import Attempt
from howdah.observe.short_id import shortened
from howdah.states import State
from howdah.text.printable import one_line
from howdah.top import words
from howdah.top.heart import Seen
from howdah.top.table import Column, Table


@dataclass(frozen=True)
class Work:
    """A job in a worker's hands."""

    attempt: Attempt
    worker_id: str
    worker_alive: bool
    at_work: timedelta | None


class RunningTable(Table[Work]):
    """One row per job."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("TYPE", share=3),
        Column("JOB", 8),
        Column("PROGRESS", 15),
        Column("STAGE", share=4),
        Column("FOR", 5, right=True),
        Column("TRY", 3, right=True),
        Column("WORKER", share=3, wide=110),
        Column("ID", 36, wide=160),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "want('cancel')", "Cancel"),
        Binding("p", "want('pause')", "Pause type"),
        Binding("w", "want('why')", "Why"),
        Binding("enter", "select_cursor", "Details"),
    ]

    def key(self, row: Work) -> str:
        return str(row.attempt.id)

    def cells(self, row: Work) -> dict[str, str | Text]:
        one = row.attempt
        lost = "" if row.worker_alive else words.WARN
        return {
            "TYPE": one.job_type,
            "JOB": Text(shortened(one.id), words.DIM),
            "STAGE": _stage(one),
            "FOR": words.age(row.at_work),
            "TRY": Text(str(one.attempt), words.WARN if one.attempt > 1 else ""),
            "WORKER": Text(one_line(row.worker_id), lost),
            "ID": Text(str(one.id), words.DIM),
        }

    def drawn(self, row: Work, title: str, width: int) -> Text | None:
        return words.bar(row.attempt.progress, width) if title == "PROGRESS" else None


def _stage(one: Attempt) -> str | Text:
    if one.current_stage:
        return one.current_stage
    return Text("claimed" if one.status is State.CLAIMED else "", words.DIM)


def rows(seen: Seen) -> list[Work]:
    """Return what is at work, the longest first."""
    if seen.overview is None:
        return []
    now = seen.overview.at
    work = [
        Work(one, worker.id, worker.alive, now - since if since else None)
        for worker in seen.workers
        for one in worker.attempts
        for since in [one.started_at or one.claimed_at]
    ]
    return sorted(work, key=lambda row: (_began(row.attempt, now), str(row.attempt.id)))


def _began(one: Attempt, now: datetime) -> tuple[bool, datetime]:
    """Order by the start; what is only claimed comes last."""
    return one.started_at is None, one.started_at or now
