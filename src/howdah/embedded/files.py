"""Files: opens files of a home without following links.

Root may work in a home that belongs to another user (`sudo`). That user could put a link there,
and root would change or give away the file that it points to. So a file is never opened for
writing through a symbolic link, nor if it has a second hard link.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def open_regular(path: Path, flags: int, mode: int = 0o600) -> int:
    """Open a regular file with one hard link; raises OSError for anything else."""
    fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, mode)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise OSError(errno.EINVAL, "it is not a regular file with one hard link", str(path))
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd


def give_to_owner_of_folder(fd: int, path: Path) -> None:
    """Give a file that root made to the owner of its folder, who can then use it without `sudo`."""
    if os.geteuid() == 0:
        folder = path.parent.stat()
        os.fchown(fd, folder.st_uid, folder.st_gid)


def append_regular(path: Path, text: str) -> None:
    """Append text to a regular file."""
    with open(open_regular(path, os.O_WRONLY | os.O_APPEND), "a") as file:
        file.write(text)


def rewrite_regular(path: Path, text: str) -> None:
    """Replace the content of a regular file; it is truncated only after it was checked."""
    with open(open_regular(path, os.O_WRONLY), "w") as file:
        file.truncate(0)
        file.write(text)
