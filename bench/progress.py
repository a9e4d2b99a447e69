"""Progress: print a line about the run to stderr, at once."""

from __future__ import annotations

import sys


def show_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
