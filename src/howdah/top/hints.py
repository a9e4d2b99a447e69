"""Hints: what to do when a pane is empty."""

from __future__ import annotations

from howdah.text.printable import one_line
from howdah.top.heart import Seen

START = "Start one:  howdah worker your_module:queue"


def empty(title: str, seen: Seen) -> str:
    """Say why a pane is empty, and what to do about it."""
    workers = any(worker.alive for worker in seen.workers)
    match title:
        case "Types":
            return (
                "No jobs yet, and no worker.\n\n"
                "Enqueue one:         howdah enqueue hello name=you\n"
                "Start a worker:      howdah worker your_module:queue\n"
                "See it all at work:  howdah demo"
            )
        case "Running":
            return "Nothing is at work." if workers else f"No worker is alive. {START}"
        case "Workers":
            return f"No worker is alive. {START}"
        case _:
            return "No job has failed."


def filtered(text: str) -> str:
    """Say that the filter hides all there is."""
    return f"Nothing here is of a type with “{one_line(text)}” in its name. Escape shows all."
