"""Log: the log of the server, in one file with a limited size.

The server has the file open for appending, so the file can be truncated while it writes. The
reaper does that now and then. With `size` and `since` a failed start shows only its own lines.
"""

from __future__ import annotations

import os
from pathlib import Path

from howdah.embedded.files import give_to_owner_of_folder, open_regular

MAX_SIZE = 8_000_000
KEEP_SIZE = 1_000_000


def open_log(path: Path) -> int:
    fd = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    give_to_owner_of_folder(fd, path)
    return fd


def trim(path: Path, max_size: int = MAX_SIZE, keep_size: int = KEEP_SIZE) -> None:
    """Cut a log that is too large down to its last lines."""
    try:
        if path.stat().st_size <= max_size:
            return
        with open(open_regular(path, os.O_RDWR), "rb+") as file:
            file.seek(-keep_size, os.SEEK_END)
            _, _, last_lines = file.read().partition(b"\n")
            file.truncate(0)
        with open(open_regular(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
            file.write(last_lines)
    except FileNotFoundError:
        return


def size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def since(path: Path, start: int, max_length: int = 4000) -> str:
    """Read what was written after position `start`; only its end if it is long."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, path.stat().st_size - max_length))
            return file.read().decode(errors="replace").strip()
    except FileNotFoundError:
        return ""
