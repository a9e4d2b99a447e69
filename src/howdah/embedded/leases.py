"""Leases: which processes use the server, one locked file each.

Comes after   server.py   which takes one lease per process, whatever the number of joins
Comes before  reaper.py   which stops the server once no lease is held

A file in users/ counts while its process holds it locked. What kill -9 leaves behind is an
unlocked file, which means nothing and is swept away by the next who comes. New leases are
taken under start.lock, so whoever holds that lock knows that "nobody" stays true.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from howdah.embedded.home import Home, make_folder
from howdah.embedded.locks import Lock, is_held


class Lease:
    def __init__(self, home: Home) -> None:
        make_folder(home.users)
        self._path = home.users / f"{os.getpid()}-{secrets.token_hex(4)}"
        self._lock = Lock(self._path)
        self._lock.acquire()

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        self._lock.close()


def held(home: Home) -> list[Path]:
    """List the leases of living processes."""
    return [path for path in _files(home) if is_held(path)]


def users(home: Home) -> list[int]:
    """Tell the pids of the processes that use the server."""
    return sorted(int(path.name.partition("-")[0]) for path in held(home))


def wait_for_nobody(home: Home) -> None:
    """Sleep in the kernel until no lease is held."""
    while leases := held(home):
        try:
            lock = Lock(leases[0], create=False)
        except FileNotFoundError:
            continue
        with lock:
            lock.acquire(shared=True)


def sweep(home: Home) -> None:
    """Remove what dead processes left behind. Asks for start.lock."""
    for path in _files(home):
        if not is_held(path):
            path.unlink(missing_ok=True)


def _files(home: Home) -> list[Path]:
    try:
        return sorted(path for path in home.users.iterdir() if path.name[:1].isdigit())
    except FileNotFoundError:
        return []
