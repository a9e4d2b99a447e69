"""Running: the jobs that workers hold, with their progress; the longest running first.

Of a worker with very many jobs only the first are shown; `howdah jobs` lists all.
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
from howdah.top import formatting
from howdah.top.poller import Snapshot
from howdah.top.table import Column, Table


@dataclass(frozen=True)
class RunningJob:
    """A job that a worker holds."""

    attempt: Attempt
    worker_id: str
    worker_alive: bool
    running_for: timedelta | None


class RunningTable(Table[RunningJob]):
    """One row per job."""

    COLUMNS: ClassVar[tuple[Column, ...]] = (
        Column("TYPE", share=3),
        Column("JOB", 8),
        Column("PROGRESS", 15),
        Column("STAGE", share=4),
        Column("FOR", 5, right=True),
        Column("TRY", 3, right=True),
        Column("WORKER", share=3, min_screen=110),
        Column("ID", 36, min_screen=160),
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "request('cancel')", "Cancel"),
        Binding("p", "request('pause')", "Pause type"),
        Binding("w", "request('why')", "Why"),
        Binding("enter", "select_cursor", "Details"),
    ]

    def key(self, row: RunningJob) -> str:
        return str(row.attempt.id)

    def cells(self, row: RunningJob) -> dict[str, str | Text]:
        attempt = row.attempt
        lost = "" if row.worker_alive else formatting.WARN
        return {
            "TYPE": attempt.job_type,
            "JOB": Text(shortened(attempt.id), formatting.DIM),
            "STAGE": _stage(attempt),
            "FOR": formatting.age(row.running_for),
            "TRY": Text(str(attempt.attempt), formatting.WARN if attempt.attempt > 1 else ""),
            "WORKER": Text(one_line(row.worker_id), lost),
            "ID": Text(str(attempt.id), formatting.DIM),
        }

    def draw_cell(self, row: RunningJob, title: str, width: int) -> Text | None:
        return formatting.bar(row.attempt.progress, width) if title == "PROGRESS" else None


def _stage(attempt: Attempt) -> str | Text:
    if attempt.current_stage:
        return attempt.current_stage
    return Text("claimed" if attempt.status is State.CLAIMED else "", formatting.DIM)


def rows(snapshot: Snapshot) -> list[RunningJob]:
    """Return the running jobs, the longest running first."""
    if snapshot.overview is None:
        return []
    now = snapshot.overview.at
    running = [
        RunningJob(attempt, worker.id, worker.alive, now - since if since else None)
        for worker in snapshot.workers
        for attempt in worker.attempts
        for since in [attempt.started_at or attempt.claimed_at]
    ]
    return sorted(running, key=lambda row: (_began(row.attempt, now), str(row.attempt.id)))


def _began(attempt: Attempt, now: datetime) -> tuple[bool, datetime]:
    """Sort by the start; jobs that are only claimed come last."""
    return attempt.started_at is None, attempt.started_at or now
