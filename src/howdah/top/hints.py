"""Hints: what an empty pane shows."""

from __future__ import annotations

from howdah.text.printable import one_line
from howdah.top.poller import Snapshot

START = "Start one:  howdah worker your_module:queue"


def empty(title: str, snapshot: Snapshot) -> str:
    """Return why a pane is empty, and what to do about it."""
    workers = any(worker.alive for worker in snapshot.workers)
    match title:
        case "Types":
            return (
                "No jobs yet, and no worker.\n\n"
                "Enqueue one:         howdah enqueue hello name=you\n"
                "Start a worker:      howdah worker your_module:queue\n"
                "See it all at work:  howdah demo"
            )
        case "Running":
            return "No job is running." if workers else f"No worker is alive. {START}"
        case "Workers":
            return f"No worker is alive. {START}"
        case _:
            return "No job has failed."


def filtered(text: str) -> str:
    """Return the hint of a pane whose rows are all hidden by the filter."""
    shown = one_line(text)
    return f"No type here has “{shown}” in its name, or as its queue. Press escape to show all."
