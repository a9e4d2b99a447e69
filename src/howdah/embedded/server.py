"""Server: joins the private server of a home, and releases it again.

A process holds one user lock per home, however often it joins, until the last release. The order is
user lock, reaper, server: there is never a server that nobody would stop. These functions block for
up to some seconds: call them from a coroutine with `asyncio.to_thread`.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from howdah.embedded import postmaster, user_locks
from howdah.embedded.files import open_regular
from howdah.embedded.home import DATABASE, Home, find_home, make_folder
from howdah.embedded.launch import ensure_running
from howdah.embedded.locks import start_lock
from howdah.embedded.reaper import ensure_reaper
from howdah.embedded.unavailable import unavailable
from howdah.embedded.user_locks import UserLock
from howdah.embedded.wire import ServerError, Session


@dataclass
class _Joined:
    lock: UserLock
    count: int = 0


_mutex = threading.Lock()
_joined: dict[Path, _Joined] = {}


class Server:
    """A running server that this process uses. Call `release` at the end, or use `with`."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.dsn: str = home.dsn
        self._process: int | None = os.getpid()

    def release(self) -> None:
        """Stop using the server. A second call changes nothing."""
        with _mutex:
            if self._process == os.getpid():  # a forked child does not hold its parent's lock
                _release_lock(self.home)
            self._process = None

    def stop(self) -> None:
        """Stop the server now, even if others use it, and release it."""
        stop(self.home.path)
        self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.release()


@dataclass(frozen=True, slots=True)
class Status:
    running: bool
    kept: bool  # stays up without users, until `howdah pg stop`
    pid: int | None
    version: str | None  # of the running server, or the major version that made the data
    users: tuple[int, ...]  # the processes that use it
    dsn: str
    home: Path
    data: Path
    log: Path


def join(home: Path | None = None, *, keep: bool = False) -> Server:
    """Start the private server, or join it if it runs; with `keep` it stays up without users."""
    server_home = find_home(home)
    try:
        make_folder(server_home.path)
        with _mutex, start_lock(server_home.path):
            joined = _joined.get(server_home.path) or _Joined(UserLock(server_home))
            _joined[server_home.path] = joined
            joined.count += 1
            try:
                running = _start_server(server_home, keep=keep)
            except BaseException:
                _release_lock(server_home)
                raise
    except OSError as problem:
        raise unavailable(
            f"Cannot use the folder {server_home.path}: {problem}.\n"
            "Set HOWDAH_HOME to a folder that you can write to."
        ) from problem
    return Server(running)


def stop(home: Path | None = None) -> bool:
    """Stop the server, even one that is kept up; returns False if none was running."""
    server_home = find_home(home)
    if not server_home.path.exists():
        return False
    with start_lock(server_home.path):
        server_home.keep.unlink(missing_ok=True)
        return postmaster.stop(find_home(server_home.path))


def status(home: Path | None = None) -> Status:
    """Return the status of the server. Changes nothing."""
    server_home = find_home(home)
    pid = postmaster.running_pid(server_home)
    return Status(
        running=pid is not None,
        kept=pid is not None and server_home.keep.exists(),
        pid=pid,
        version=(_version(server_home) if pid else None) or server_home.major,
        users=tuple(user_locks.users(server_home)),
        dsn=server_home.dsn,
        home=server_home.path,
        data=server_home.pgdata,
        log=server_home.log,
    )


def _start_server(home: Home, *, keep: bool) -> Home:
    user_locks.remove_stale(home)
    ensure_reaper(home)
    running = ensure_running(home)
    if keep:
        os.close(open_regular(home.keep, os.O_WRONLY | os.O_CREAT))
    return running


def _release_lock(home: Home) -> None:
    joined = _joined[home.path]
    joined.count -= 1
    if joined.count == 0:
        del _joined[home.path]
        joined.lock.release()


def _version(home: Home) -> str | None:
    try:
        with Session(home.socket, DATABASE) as session:
            return session.parameters.get("server_version")
    except (ServerError, OSError):
        return None


def _forget_in_child() -> None:
    """Let a forked child join by itself: its copy of the lock was closed (locks.py)."""
    global _mutex
    _mutex = threading.Lock()
    _joined.clear()


os.register_at_fork(after_in_child=_forget_in_child)
