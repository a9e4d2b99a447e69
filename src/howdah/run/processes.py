"""Processes: functions in processes of their own, which can really be stopped.

A child is started when it is first needed and serves one job after another. A job that times
out or is lost takes its child with it (SIGKILL); the next job gets a new one. Jobs travel as
JSON frames; child.py is the other end.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import msgspec

from howdah.handler import Handler
from howdah.job import Claim
from howdah.run import frames

_START_PATIENCE = 60.0


class ChildDied(Exception):
    """A child process ended in the middle of a job."""


class Processes:
    """A pool of child processes, at most `size` of them."""

    def __init__(self, size: int) -> None:
        self._free = asyncio.Semaphore(size)
        self._idle: list[_Child] = []
        self._children: set[_Child] = set()

    async def run(
        self,
        handler: Handler,
        claim: Claim,
        report: Callable[[frames.Progress | frames.Emit], None],
        timeout: float | None,
    ) -> frames.Returned | frames.Said | frames.Raised:
        """Run one job in a child; when time is up, or this is cancelled, the child is killed."""
        async with self._free:
            child = self._idle.pop() if self._idle else await self._start()
            try:
                async with asyncio.timeout(timeout):  # counts the work, not the wait for a child
                    ending = await child.do(handler, claim, report)
            except BaseException:
                self._children.discard(child)
                await child.kill()
                raise
            self._idle.append(child)
            return ending

    async def _start(self) -> _Child:
        child = await _Child.start()
        self._children.add(child)
        return child

    async def close(self) -> None:
        for child in list(self._children):
            await child.kill()
        self._children.clear()
        self._idle.clear()


class _Child:
    def __init__(
        self,
        process: subprocess.Popen[bytes],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer

    @classmethod
    async def start(cls) -> _Child:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(  # noqa: ASYNC220,S603 - returns at once; our own interpreter
                [sys.executable, "-m", "howdah.run.child", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C is for the worker, which then decides
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )
        ours.setblocking(False)
        reader, writer = await asyncio.open_connection(sock=ours)
        child = cls(process, reader, writer)
        try:
            async with asyncio.timeout(_START_PATIENCE):
                child._say(frames.Begin(path=sys.path, main=_main_file()))
                await child._hear()
        except BaseException:
            await child.kill()
            raise
        return child

    async def do(
        self,
        handler: Handler,
        claim: Claim,
        report: Callable[[frames.Progress | frames.Emit], None],
    ) -> frames.Returned | frames.Said | frames.Raised:
        function = handler.function
        self._say(frames.Do(function.__module__, function.__qualname__, claim))
        while True:
            heard = await self._hear()
            if isinstance(heard, frames.Progress | frames.Emit):
                report(heard)
            elif not isinstance(heard, frames.Ready):
                return heard

    def _say(self, message: frames.ToChild) -> None:
        self._writer.write(frames.frame(message))

    async def _hear(self) -> frames.FromChild:
        try:
            size = frames.length(await self._reader.readexactly(frames.HEADER))
            if size > frames.LONGEST:
                raise ChildDied(f"the process of this job sent {size:,} bytes at once")
            return frames.from_child.decode(await self._reader.readexactly(size))
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise ChildDied(f"the process of this job sent what is no message: {error}") from None
        except (asyncio.IncompleteReadError, ConnectionError):
            code = await asyncio.to_thread(self._process.wait)
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise ChildDied(f"the process of this job ended with {how}") from None

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        with suppress(Exception):
            self._writer.close()
        # killed, so it ends at once; shielded, so that it is reaped even if we are cancelled
        await asyncio.shield(asyncio.to_thread(self._process.wait))


def _main_file() -> str | None:
    """Where the program began: a handler defined there has the module `__main__`."""
    main = sys.modules.get("__main__")
    if main is None or getattr(main, "__spec__", None) is not None:
        return None
    file = getattr(main, "__file__", None)
    return os.path.abspath(file) if isinstance(file, str) else None
