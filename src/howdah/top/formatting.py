"""Formatting: printable text, styles, bars, trends, and numbers for narrow columns.

Text from the database passes through `clean` or `one_line` and becomes a rich `Text`, which is
never parsed as markup. A job type may be called `[bold]` or contain a control sequence: it is
shown as it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from rich.text import Text

from howdah.text import printable, wording
from howdah.text.printable import one_line

_LEVELS = "▁▂▃▄▅▆▇█"

DIM, GOOD, BAD, WARN, BUSY = "dim", "green", "bold red", "bold magenta", "cyan"


def clean(text: str) -> str:
    """Make control characters visible; a tab becomes four spaces."""
    return printable.clean(text).replace("\t", "    ")


def cut(text: str, width: int, style: str = "") -> Text:
    """Cut text to one line of `width` columns."""
    line = Text(one_line(text), style=style, no_wrap=True)
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def short(of: timedelta | None) -> str:
    """Format a duration for a narrow column; empty if there is none."""
    return "" if of is None else wording.short_length(of)


def age(of: timedelta | None) -> str:
    """Format how long ago something was, or how long it has lasted; empty if unknown."""
    return "" if of is None else wording.age(of)


def rate(per_second: float) -> str:
    """Format jobs per second; empty if there are none."""
    return wording.per_second(per_second) if per_second else ""


def share(of: float | None) -> str:
    """Format a failure rate; empty if nothing failed."""
    return wording.percent(of) if of else ""


def bar(percent: int, width: int) -> Text:
    """Draw a progress bar, with the percentage after it."""
    shown = min(max(percent, 0), 100)
    bar_width = max(1, width - 5)
    full = shown * bar_width // 100
    return Text.assemble(
        ("━" * full, GOOD if shown == 100 else BUSY),
        ("─" * (bar_width - full), DIM),
        f"{shown:>4}%",
    )


def trend(counts: Sequence[int], width: int) -> str:
    """Draw counts as a row of bars, the newest at the right; a zero is blank."""
    if not counts or width < 1:
        return ""
    size = -(-len(counts) // width)  # counts per bar
    first = len(counts) % size
    bars = [sum(counts[:first])] if first else []
    bars += [sum(counts[start : start + size]) for start in range(first, len(counts), size)]
    highest = max(bars)
    return "".join(
        _LEVELS[(count * len(_LEVELS) - 1) // highest] if count else " " for count in bars
    )
