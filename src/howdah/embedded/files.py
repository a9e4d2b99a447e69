"""Files: open a file of a home, and never another one.

Comes before  locks.py, log.py, postmaster.py and settings.py, which open files to write

Root may work in a home that belongs to another user (`sudo`). That user can leave a link
there, and root would then change or give away the file it points to. So nothing is opened
for writing through a link, and nothing that has a second name elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def open_own(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a plain file that has one name; raises OSError for anything else."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, mode)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise OSError(errno.EINVAL, "it is not a plain file with one name", str(path))
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd


def give_to_owner_of_folder(fd: int, path: Path) -> None:
    """Let a file that root made belong to whom its folder belongs: `sudo` locks nobody out."""
    if os.geteuid() == 0:
        around = path.parent.stat()
        os.fchown(fd, around.st_uid, around.st_gid)


def append_own(path: Path, text: str) -> None:
    """Add text at the end of a file of a home."""
    with open(open_own(path, os.O_WRONLY | os.O_APPEND), "a") as file:
        file.write(text)


def rewrite_own(path: Path, text: str) -> None:
    """Write a file of a home anew; it is cut only once it is known to be a plain one."""
    with open(open_own(path, os.O_WRONLY), "w") as file:
        file.truncate(0)
        file.write(text)
