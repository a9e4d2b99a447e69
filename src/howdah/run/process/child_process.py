"""Process: one child as its minder sees it: started, spoken to, heard, killed and reaped.

It is known to be dead when its pipe ends or, where the system can tell, when it ends itself: what
a handler has forked may hold the pipe open.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from howdah.run.job_logging import log_lines
from howdah.run.process import protocol
from howdah.run.process.import_check import main_file
from howdah.run.process.inbox import Inbox

# What howdah needs is imported first, from where the worker has it. Only then does child.py take
# over the worker's path, with the folders of the program.
_OWN = ("howdah", "msgspec", "asyncpg")
BOOT = (
    "import sys; sys.path.extend(p for p in sys.argv[3:] if p not in sys.path); "
    "from howdah.run.process.child_main import main; main()"
)


class Process:
    """A Python process that runs child.py, the pipe to it, and its tray."""

    def __init__(self, readable: Callable[[], None], dead: Callable[[], None]) -> None:
        """Start it; tells when there is something to read, and when it is dead."""
        self._loop = asyncio.get_running_loop()
        self._pipe, theirs = socket.socketpair()
        self._pipe.setblocking(False)
        self.tray: Inbox = Inbox()
        ends = [theirs.fileno(), self.tray.fileno]
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - our own interpreter
                command(*ends),
                pass_fds=ends,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C is for the worker, which then decides
            )
        except BaseException:
            self._pipe.close()
            self.tray.close()
            raise
        finally:
            theirs.close()
        self._pidfd = _pidfd(self._popen.pid)
        self._loop.add_reader(self._pipe, readable)
        if self._pidfd is not None:
            self._loop.add_reader(self._pidfd, dead)

    def read(self) -> bytes | None:
        """Return what it has said; nothing at the end, None if there is nothing yet."""
        try:
            return self._pipe.recv(256 * 1024)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    async def send(self, frame: bytes) -> None:
        with suppress(ConnectionError):  # it has died, which the reading side will see
            await self._loop.sock_sendall(self._pipe, frame)

    def kill(self) -> None:
        """Kill it, and tell no more; what it has said can still be read."""
        self._loop.remove_reader(self._pipe)
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._popen.kill()

    async def reaped(self) -> str:
        """Wait for the end of a killed child; returns how it ended."""
        wait = 0.001
        while (code := self._popen.poll()) is None:  # without a thread: there may be none left
            await asyncio.sleep(wait)
            wait = min(wait * 2, 0.1)
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def close(self) -> None:
        self._pipe.close()
        self.tray.close()


def command(pipe: int, tray: int) -> list[str]:
    """Return how to start a child: `-P` keeps the current directory out of its path."""
    return [sys.executable, "-P", "-c", BOOT, str(pipe), str(tray), *own_folders()]


def own_folders() -> list[str]:
    """Return where howdah and what it needs were found, perhaps not on Python's own path."""
    found = [Path(str(sys.modules[name].__file__)).parent.parent for name in _OWN]
    return list(dict.fromkeys(map(str, found)))


def begin() -> protocol.Begin:
    """Return what the world of a child looks like: like ours."""
    return protocol.Begin(path=sys.path, main=main_file(), log=log_lines())


def _pidfd(pid: int) -> int | None:
    with suppress(AttributeError, OSError):  # not on every system
        return os.pidfd_open(pid)
    return None
