"""Words: text of unknown origin made harmless, and numbers as a narrow column shows them.

Whatever comes from the database passes through `clean` or `one_line` and becomes a rich `Text`,
which is never read as markup: a job type may be called `[bold]` or hold the escape sequence that
clears a screen, and is shown as it is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from rich.text import Text

from howdah.text import printable
from howdah.text.printable import one_line

_LEVELS = "▁▂▃▄▅▆▇█"
_STEPS = ((86400, "d"), (3600, "h"), (60, "m"))

DIM, GOOD, BAD, WARN, BUSY = "dim", "green", "bold red", "bold magenta", "cyan"


def clean(text: str) -> str:
    """Make unseen characters visible; a tab is a few blanks."""
    return printable.clean(text).replace("\t", "    ")


def cut(text: str, width: int, style: str = "") -> Text:
    """Put text on one line of so many columns."""
    made = Text(one_line(text), style=style, no_wrap=True)
    made.truncate(max(1, width), overflow="ellipsis")
    return made


def short(of: timedelta | None) -> str:
    """Word a length of time in five characters at most: 40ms, 3.2s, 12s, 5m, 3h, 2d."""
    if of is None:
        return ""
    seconds = max(0.0, of.total_seconds())
    for size, unit in _STEPS:
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    if seconds >= 9.95:
        return f"{seconds:.0f}s"
    return f"{seconds:.1f}s" if seconds >= 0.9995 else f"{seconds * 1000:.0f}ms"


def age(of: timedelta | None) -> str:
    """Word how long ago something was, or has been going on."""
    return "now" if of is not None and of < timedelta(seconds=1) else short(of)


def rate(per_second: float) -> str:
    """Word jobs per second: 0.1, 12, 1,200."""
    if not per_second:
        return ""
    return f"{per_second:,.0f}" if per_second >= 10 else f"{per_second:.1f}"


def share(of: float | None) -> str:
    """Word a rate of failure; one that is not nothing never reads as nothing."""
    if not of:
        return ""
    return "<1%" if of < 0.01 else f"{of:.0%}"


def bar(percent: int, width: int) -> Text:
    """Draw how far a job is, with the number behind."""
    shown = min(max(percent, 0), 100)
    room = max(1, width - 5)
    full = shown * room // 100
    return Text.assemble(
        ("━" * full, GOOD if shown == 100 else BUSY),
        ("─" * (room - full), DIM),
        f"{shown:>4}%",
    )


def trend(counts: Sequence[int], width: int) -> str:
    """Draw counts as a line of bars, the newest at the right; what was nothing stays blank."""
    if not counts or width < 1:
        return ""
    size = -(-len(counts) // width)  # so many counts in one bar
    first = len(counts) % size
    bars = [sum(counts[:first])] if first else []
    bars += [sum(counts[at : at + size]) for at in range(first, len(counts), size)]
    most = max(bars)
    return "".join(_LEVELS[(count * len(_LEVELS) - 1) // most] if count else " " for count in bars)
