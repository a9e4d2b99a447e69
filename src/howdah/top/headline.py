"""Headline: the first two lines: the numbers of the whole queue, and the worst problem."""

from __future__ import annotations

from datetime import timedelta

from rich.text import Text

from howdah.observe import Count, Level, Overview
from howdah.top import words
from howdah.top.heart import Seen


def numbers(seen: Seen, slow: float | None, width: int, read_only: bool) -> Text:
    """Say how things are, in one line, and when the next look comes if it comes late."""
    made = Text("howdah", style="bold", no_wrap=True)
    made.append("  read-only" if read_only else "", style=words.WARN)
    now = seen.overview
    if now is not None:
        for value, label in _facts(now):
            made.append(f"  {value}", style="bold")
            made.append(f" {label}", style=words.DIM)
    at = f"{seen.at:%H:%M:%S}" if seen.at else ""
    if slow is not None:
        at += f", next in {words.short(timedelta(seconds=slow))}"
    made.truncate(max(1, width - len(at) - 1), overflow="ellipsis", pad=True)
    return made.append(f" {at}", style=words.DIM)


def _facts(now: Overview) -> list[tuple[str, str]]:
    speed = sum(one.per_second for one in now.types)
    waiting = sum((one.waiting for one in now.types), Count())
    running = sum(one.running + one.claimed for one in now.types)
    return [
        (words.rate(speed) or "0", "jobs/s"),
        (str(waiting), "waiting"),
        (f"{running:,}", "running"),
        (f"{now.workers:,}", "worker" if now.workers == 1 else "workers"),
        (f"{now.busy:,}/{now.slots:,}", "slots"),
    ]


def worst(seen: Seen, width: int) -> Text:
    """Say the worst problem in one line, and how many more there are."""
    if seen.trouble is not None:
        return words.cut(f"○ {seen.trouble}", width, words.WARN)
    if seen.overview is None:
        return Text("Looking …", style=words.DIM)
    problems = seen.problems
    if not problems:
        return Text("✓ nothing to worry about", style=words.GOOD, no_wrap=True)
    first, *others = problems
    more = f"  +{len(others)} more (!)" if others else "  (!)"
    style = words.BAD if first.level is Level.CRITICAL else words.WARN
    made = words.cut(f"▲ {first.sentence}", width - len(more), style)
    return Text.assemble(made, (more, words.DIM), no_wrap=True)
