"""Last frame: the place where an error was raised, read from a traceback."""

from __future__ import annotations

MAX_LENGTH = 1_000  # characters
LINES = 3  # the file and line, the code, and the carets below it


def last_frame(traceback: str | None) -> str | None:
    """Return the last `File "…", line …` with its line of code; None if there is none."""
    lines = (traceback or "").splitlines()
    starts = [n for n, line in enumerate(lines) if _bare(line).startswith('File "')]
    if not starts:
        return None
    frame = [_bare(lines[starts[-1]])]
    depth = _depth(lines[starts[-1]])
    for line in lines[starts[-1] + 1 : starts[-1] + LINES]:
        if not line.strip() or _depth(line) <= depth:
            break
        frame.append(" " * (_depth(line) - depth) + _bare(line))
    return "\n".join(frame)[:MAX_LENGTH]


def _bare(line: str) -> str:
    return line.lstrip(" \t|+")  # an exception group has a border at the left


def _depth(line: str) -> int:
    return len(line) - len(_bare(line))
