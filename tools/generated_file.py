"""Generated files: write them, or check that they are up to date.

Shared by tools/write_*.py, bench/table.py and bench/limits.py. With `--check` nothing is written:
each file that is out of date is named, with the command that writes it, and the exit code is 1.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def write_or_check(texts: Mapping[Path, str], arguments: Sequence[str], command: str) -> int:
    """Write each file that is out of date, or name it; return the exit code."""
    stale = {path: text for path, text in texts.items() if _read(path) != text}
    if "--check" in arguments:
        for path in stale:
            name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
            print(f"{name} is out of date: run `{command}`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in stale.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def replace_between(text: str, begin: str, end: str, content: str) -> str:
    """Return the text with new content between two markers; unchanged if one is missing."""
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    return f"{before}{begin}{content}{end}{after}" if found_begin and found_end else text
