"""Locks: files that are locked with flock; the kernel releases them when their holder dies.

    start.lock    held while a server is started, joined or stopped: one at a time
    server.lock   held by the server and all its processes, which inherit it
    reaper.lock   held by the reaper, of which there is only one
    users/*       one per process that uses the server (user_locks.py)

So nothing here depends on a pid, which may belong to another process by now, and `kill -9` leaves
nothing to clean up. A lock belongs to the open file, so the file must not leak: it is closed on
exec, and `_close_in_child` closes it after a fork.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from howdah.embedded.files import give_to_owner_of_folder, open_regular

_open: set[Lock] = set()


class Lock:
    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.fd: int = open_regular(path, os.O_RDWR | (os.O_CREAT if create else 0))
        _open.add(self)
        if create:
            give_to_owner_of_folder(self.fd, path)

    def acquire(self, *, shared: bool = False) -> None:
        """Take the lock; blocks until it is free."""
        fcntl.flock(self.fd, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)

    def try_acquire(self, *, shared: bool = False) -> bool:
        try:
            fcntl.flock(self.fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Release the lock. Never LOCK_UN: a process that inherited it would lose it too."""
        if self in _open:
            _open.discard(self)
            os.close(self.fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()


def start_lock(home: Path) -> Lock:
    """Take start.lock: no other process can start, join or stop the server meanwhile."""
    lock = Lock(home / "start.lock")
    try:
        lock.acquire()
    except BaseException:
        lock.close()
        raise
    return lock


def server_lock(home: Path) -> Lock:
    return Lock(home / "server.lock")


def reaper_lock(home: Path) -> Lock:
    return Lock(home / "reaper.lock")


def is_held(path: Path) -> bool:
    """Tell whether a process holds the lock at `path` now."""
    try:
        lock = Lock(path, create=False)
    except FileNotFoundError:
        return False
    with lock:
        return not lock.try_acquire(shared=True)


def _close_in_child() -> None:
    for lock in list(_open):
        lock.close()


os.register_at_fork(after_in_child=_close_in_child)
