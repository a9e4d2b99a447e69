"""Formatting: states, times and progress as text on a terminal."""

from __future__ import annotations

from datetime import UTC, datetime

from rich.text import Text

from howdah.job import Job
from howdah.states import State
from howdah.text import wording
from howdah.text.printable import one_line
from howdah.text.wording import jobs, length

__all__ = ["STYLES", "age", "ago", "jobs", "length", "moment", "progress", "status"]

STYLES = {
    State.PENDING: "cyan",
    State.CLAIMED: "blue",
    State.RUNNING: "bold blue",
    State.COMPLETED: "green",
    State.FAILED: "bold red",
    State.CANCELLED: "magenta",
}


def status(state: State) -> Text:
    return Text(state, style=STYLES[state])


def ago(at: datetime) -> str:
    """Format an instant by its distance from now: `3m 20s ago`, `in 5h 12m`."""
    return wording.ago(at, datetime.now(UTC))


def age(at: datetime) -> str:
    """Format how long ago an instant was, for a narrow column."""
    return wording.age(datetime.now(UTC) - at)


def moment(at: datetime) -> str:
    """Format an instant in the local time zone."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S} ({ago(at)})"


def progress(job: Job) -> str:
    """Format the progress of a job: `40% encoding`."""
    percent = "" if job.status is State.PENDING and not job.progress else f"{job.progress}%"
    return one_line(f"{percent} {job.current_stage or ''}")
