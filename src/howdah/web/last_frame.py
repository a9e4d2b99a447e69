"""Last frame: where an error was raised, out of a traceback that some worker wrote."""

from __future__ import annotations

LONGEST = 1_000  # characters
LINES = 3  # the place, the line of code, and the marks below it


def last_frame(traceback: str | None) -> str | None:
    """Return the last `File "…", line …` with its line of code; None where there is none."""
    lines = (traceback or "").splitlines()
    places = [n for n, line in enumerate(lines) if _bare(line).startswith('File "')]
    if not places:
        return None
    frame = [_bare(lines[places[-1]])]
    depth = _depth(lines[places[-1]])
    for line in lines[places[-1] + 1 : places[-1] + LINES]:
        if not line.strip() or _depth(line) <= depth:
            break
        frame.append(" " * (_depth(line) - depth) + _bare(line))
    return "\n".join(frame)[:LONGEST]


def _bare(line: str) -> str:
    return line.lstrip(" \t|+")  # an exception group draws lines at the left


def _depth(line: str) -> int:
    return len(line) - len(_bare(line))
