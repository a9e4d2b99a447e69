"""Server: join the private server of a home, and let it go again.

Comes after   launch.py, which has it up, and reaper.py, which will end it
Comes before  the queue, which is given `server.dsn` as if a person had

A process holds one lease per home, however often it joins; the last release gives it back.
The order is lease, reaper, server: at no moment is there a server nobody would stop. All of
this blocks for up to some seconds; from a coroutine, call it through `asyncio.to_thread`.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from howdah.embedded import leases, postmaster
from howdah.embedded.files import open_own
from howdah.embedded.home import DATABASE, Home, find_home, make_folder
from howdah.embedded.launch import ensure_running
from howdah.embedded.leases import Lease
from howdah.embedded.locks import starting
from howdah.embedded.reaper import ensure_reaper
from howdah.embedded.unavailable import unavailable
from howdah.embedded.wire import Conversation, Refused


@dataclass
class _Share:
    lease: Lease
    joined: int = 0


_mutex = threading.Lock()
_shares: dict[Path, _Share] = {}


class Server:
    """A share in a running server. Give it back with `release`, or use `with`."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.dsn: str = home.dsn
        self._process: int | None = os.getpid()

    def release(self) -> None:
        """Say that this share is no longer needed. A second time changes nothing."""
        with _mutex:
            if self._process == os.getpid():  # a forked child holds nothing of its parent's
                _give_back(self.home)
            self._process = None

    def stop(self) -> None:
        """Stop the server now, whoever else uses it, and give the share back."""
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
    users: tuple[int, ...]  # the processes that share it
    dsn: str
    home: Path
    data: Path
    log: Path


def join(home: Path | None = None, *, keep: bool = False) -> Server:
    """Start the private server, or join it if it runs; `keep` lets it stay without users."""
    place = find_home(home)
    try:
        make_folder(place.path)
        with _mutex, starting(place.path):
            share = _shares.get(place.path) or _Share(Lease(place))
            _shares[place.path] = share
            share.joined += 1
            try:
                running = _bring_up(place, keep=keep)
            except BaseException:
                _give_back(place)
                raise
    except OSError as problem:
        raise unavailable(
            f"{place.path} cannot hold its data: {problem}.\n"
            "Set HOWDAH_HOME to a folder of yours that can."
        ) from problem
    return Server(running)


def stop(home: Path | None = None) -> bool:
    """Stop the server, kept or not; False if there was none to stop."""
    place = find_home(home)
    if not place.path.exists():
        return False
    with starting(place.path):
        place.keep.unlink(missing_ok=True)
        return postmaster.stop(find_home(place.path))


def status(home: Path | None = None) -> Status:
    """Tell how things are, and change nothing."""
    place = find_home(home)
    pid = postmaster.living(place)
    return Status(
        running=pid is not None,
        kept=pid is not None and place.keep.exists(),
        pid=pid,
        version=(_version(place) if pid else None) or place.major,
        users=tuple(leases.users(place)),
        dsn=place.dsn,
        home=place.path,
        data=place.pgdata,
        log=place.log,
    )


def _bring_up(place: Home, *, keep: bool) -> Home:
    leases.sweep(place)
    ensure_reaper(place)
    running = ensure_running(place)
    if keep:
        os.close(open_own(place.keep, os.O_WRONLY | os.O_CREAT))
    return running


def _give_back(place: Home) -> None:
    share = _shares[place.path]
    share.joined -= 1
    if share.joined == 0:
        del _shares[place.path]
        share.lease.release()


def _version(place: Home) -> str | None:
    try:
        with Conversation(place.socket, DATABASE) as session:
            return session.parameters.get("server_version")
    except (Refused, OSError):
        return None


def _forget_in_child() -> None:
    """Let a forked child join for itself: its parent's lease was closed in it (locks.py)."""
    global _mutex
    _mutex = threading.Lock()
    _shares.clear()


os.register_at_fork(after_in_child=_forget_in_child)
