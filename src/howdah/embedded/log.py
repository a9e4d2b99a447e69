"""Log: what the server said, kept in one file of bounded size.

The server writes to a file that was opened for appending, so cutting the file short under
its hands is safe. The reaper does that now and then; `mark` and `since` let a failed start
show its own lines and not those of last week.
"""

from __future__ import annotations

import os
from pathlib import Path

from howdah.embedded.files import give_to_owner_of_folder, open_own

LARGEST = 8_000_000
KEPT = 1_000_000


def open_log(path: Path) -> int:
    fd = open_own(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    give_to_owner_of_folder(fd, path)
    return fd


def trim(path: Path, largest: int = LARGEST, kept: int = KEPT) -> None:
    """Cut a log that grew too large down to its last lines."""
    try:
        if path.stat().st_size <= largest:
            return
        with open(open_own(path, os.O_RDWR), "rb+") as file:
            file.seek(-kept, os.SEEK_END)
            _, _, last_lines = file.read().partition(b"\n")
            file.truncate(0)
        with open(open_own(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
            file.write(last_lines)
    except FileNotFoundError:
        return


def mark(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def since(path: Path, mark: int, most: int = 4000) -> str:
    """Read what was written after `mark`, its end if it is long."""
    try:
        with path.open("rb") as file:
            file.seek(max(mark, path.stat().st_size - most))
            return file.read().decode(errors="replace").strip()
    except FileNotFoundError:
        return ""
