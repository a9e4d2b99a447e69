"""Child process: start one child, write to it, read from it, kill it and wait for its end.

A child is dead when its pipe ends or, where the system has pidfd, when the process ends: a process
that the handler forked may hold the pipe open.
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

from howdah.growing_pause import GrowingPause
from howdah.run.job_logging import log_lines
from howdah.run.process import protocol
from howdah.run.process.import_check import main_file
from howdah.run.process.inbox import Inbox
from howdah.store.store import DRIVER

# The child imports howdah and its dependencies first, from the folders of the worker. Only then
# does child_main.py set the worker's path, with the folders of the program.
_NEEDED = ("howdah", "msgspec", DRIVER)
BOOT = (
    "import sys; sys.path.extend(p for p in sys.argv[3:] if p not in sys.path); "
    "from howdah.run.process.child_main import main; main()"
)


class ChildProcess:
    """A Python process that runs child_main.py, the pipe to it, and its inbox."""

    def __init__(self, readable: Callable[[], None], dead: Callable[[], None]) -> None:
        """Start it; tells when there is something to read, and when it is dead."""
        self._loop = asyncio.get_running_loop()
        self._pipe, child_end = socket.socketpair()
        self._pipe.setblocking(False)
        self._sending = asyncio.Lock()  # one frame after the other
        self.inbox: Inbox = Inbox()
        ends = [child_end.fileno(), self.inbox.fileno]
        try:
            self._popen = subprocess.Popen(  # noqa: S603 - our own interpreter
                command(*ends),
                pass_fds=ends,
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C goes to the worker only, which stops its children
            )
        except BaseException:
            self._pipe.close()
            self.inbox.close()
            raise
        finally:
            child_end.close()
        self._pidfd = _pidfd(self._popen.pid)
        self._loop.add_reader(self._pipe, readable)
        if self._pidfd is not None:
            self._loop.add_reader(self._pidfd, dead)

    def read(self) -> bytes | None:
        """Return what the child has sent; empty at the end, None if there is nothing yet."""
        try:
            return self._pipe.recv(256 * 1024)
        except BlockingIOError:
            return None
        except ConnectionError:
            return b""

    async def send(self, frame: bytes) -> None:
        async with self._sending:
            with suppress(ConnectionError):  # it has died: read() finds out
                await self._loop.sock_sendall(self._pipe, frame)

    def kill(self) -> None:
        """Kill the child and call no more callbacks; what it has sent can still be read."""
        self._loop.remove_reader(self._pipe)
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
        self._popen.kill()

    async def reaped(self) -> str:
        """Wait for the end of a killed child; returns how it ended."""
        pause = GrowingPause(0.001, 0.1)
        while (code := self._popen.poll()) is None:  # not in a thread: there may be none left
            seconds = pause.next()
            await asyncio.sleep(seconds)
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def close(self) -> None:
        self._pipe.close()
        self.inbox.close()


def command(pipe: int, inbox: int) -> list[str]:
    """Return the command that starts a child: `-P` keeps the current folder out of its path."""
    return [sys.executable, "-P", "-c", BOOT, str(pipe), str(inbox), *own_folders()]


def own_folders() -> list[str]:
    """Return the folders of howdah and its dependencies; they may not be on Python's own path."""
    folders = [Path(str(sys.modules[name].__file__)).parent.parent for name in _NEEDED]
    return list(dict.fromkeys(map(str, folders)))


def begin_message() -> protocol.Begin:
    """Return the first message: the same path, program and log lines as in this process."""
    return protocol.Begin(path=sys.path, main=main_file(), log=log_lines())


def _pidfd(pid: int) -> int | None:
    with suppress(AttributeError, OSError):  # not on every system
        return os.pidfd_open(pid)
    return None
