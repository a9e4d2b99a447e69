"""User locks: which processes use the server, one locked file each.

A file in users/ counts while its process holds it locked. `kill -9` leaves an unlocked file, which
does not count; the next process that joins removes it. New files are locked under start.lock, so
while a process holds that lock, "no file is locked" stays true.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from howdah.embedded.home import Home, make_folder
from howdah.embedded.locks import Lock, is_held


class UserLock:
    def __init__(self, home: Home) -> None:
        make_folder(home.users)
        self._path = home.users / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._lock = Lock(self._path)
        self._lock.acquire()

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        self._lock.close()


def held(home: Home) -> list[Path]:
    """Return the files that are locked."""
    return [path for path in _files(home) if is_held(path)]


def users(home: Home) -> list[int]:
    """Return the pids of the processes that use the server."""
    return sorted(int(path.name.partition("-")[0]) for path in held(home))


def wait_until_unused(home: Home) -> None:
    """Block until no file is locked; it waits for a lock and does not poll."""
    while files := held(home):
        try:
            lock = Lock(files[0], create=False)
        except FileNotFoundError:
            continue
        with lock:
            lock.acquire(shared=True)


def remove_stale(home: Home) -> None:
    """Remove the files of dead processes. The caller holds start.lock."""
    for path in _files(home):
        if not is_held(path):
            path.unlink(missing_ok=True)


def _files(home: Home) -> list[Path]:
    try:
        return sorted(path for path in home.users.iterdir() if path.name[:1].isdigit())
    except FileNotFoundError:
        return []
