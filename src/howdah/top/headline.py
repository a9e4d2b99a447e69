"""Headline: the first two lines, with the numbers of the queue and the worst problem."""

from __future__ import annotations

from datetime import timedelta

from rich.text import Text

from howdah.observe import Count, Level, Overview
from howdah.top import formatting
from howdah.top.poller import Snapshot


def summary_line(snapshot: Snapshot, slow_wait: float | None, width: int, read_only: bool) -> Text:
    """Show the numbers in one line; also the time until the next poll, if that is long."""
    line = Text("howdah", style="bold", no_wrap=True)
    line.append("  read-only" if read_only else "", style=formatting.WARN)
    now = snapshot.overview
    if now is not None:
        for value, label in _facts(now):
            line.append(f"  {value}", style="bold")
            line.append(f" {label}", style=formatting.DIM)
    at = f"{snapshot.at:%H:%M:%S}" if snapshot.at else ""
    if slow_wait is not None:
        at += f", next in {formatting.short(timedelta(seconds=slow_wait))}"
    line.truncate(max(1, width - len(at) - 1), overflow="ellipsis", pad=True)
    return line.append(f" {at}", style=formatting.DIM)


def _facts(now: Overview) -> list[tuple[str, str]]:
    speed = sum(each.per_second for each in now.types)
    waiting = sum((each.waiting for each in now.types), Count())
    running = sum(each.running + each.claimed for each in now.types)
    return [
        (formatting.rate(speed) or "0", "jobs/s"),
        (str(waiting), "waiting"),
        (f"{running:,}", "running"),
        (f"{now.workers:,}", "worker" if now.workers == 1 else "workers"),
        (f"{now.busy:,}/{now.slots:,}", "slots"),
    ]


def problem_line(snapshot: Snapshot, width: int) -> Text:
    """Show the worst problem in one line, and how many more there are."""
    if snapshot.error is not None:
        return formatting.cut(f"○ {snapshot.error}", width, formatting.WARN)
    if snapshot.overview is None:
        return Text("Loading …", style=formatting.DIM)
    problems = snapshot.problems
    if not problems:
        return Text("✓ no problems", style=formatting.GOOD, no_wrap=True)
    first, *others = problems
    more = f"  +{len(others)} more (!)" if others else "  (!)"
    style = formatting.BAD if first.level is Level.CRITICAL else formatting.WARN
    sentence = formatting.cut(f"▲ {first.sentence}", width - len(more), style)
    return Text.assemble(sentence, (more, formatting.DIM), no_wrap=True)
