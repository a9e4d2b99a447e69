"""Words: how values read on a terminal: states, times, priorities.

Comes before  ground.py and every command that prints for people
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rich.text import Text

from howdah.job import Job
from howdah.states import State
from howdah.text.printable import one_line

STYLES = {
    State.PENDING: "cyan",
    State.CLAIMED: "blue",
    State.RUNNING: "bold blue",
    State.COMPLETED: "green",
    State.FAILED: "bold red",
    State.CANCELLED: "magenta",
}

_STEPS = ((86400, "d"), (3600, "h"), (60, "m"))


def status(state: State) -> Text:
    return Text(state, style=STYLES[state])


def length(of: timedelta) -> str:
    """Word a length of time: 0.4s, 12s, 3m 20s, 5h 12m, 2d 4h."""
    seconds = of.total_seconds()
    if seconds < 10:
        return f"{max(seconds, 0):.1f}s"
    for size, unit in _STEPS:
        if seconds >= size:
            whole, rest = divmod(int(seconds), size)
            smaller, name = {"d": (3600, "h"), "h": (60, "m"), "m": (1, "s")}[unit]
            return f"{whole}{unit} {rest // smaller}{name}" if rest // smaller else f"{whole}{unit}"
    return f"{int(seconds)}s"


def ago(at: datetime) -> str:
    """Word how long ago that was, or how far ahead it lies."""
    past = datetime.now(UTC) - at
    if past < timedelta():
        return f"in {_whole(-past)}"
    return f"{_whole(past)} ago"


def _whole(of: timedelta) -> str:
    seconds = int(of.total_seconds())
    for size, unit in _STEPS:
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def moment(at: datetime) -> str:
    """Word an instant in the reader's own time zone."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S} ({ago(at)})"


def progress(job: Job) -> str:
    """Word how far a job is: `40% encoding`."""
    percent = "" if job.status is State.PENDING and not job.progress else f"{job.progress}%"
    return one_line(f"{percent} {job.current_stage or ''}")


def jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"
