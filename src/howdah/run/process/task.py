"""Errand: a job on its way through a child process.

Waits in processes.py until a child has room, then is in the hands of that child's minder until it
has ended, or was taken back. Whoever asked for it awaits `ending`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from howdah.run.process import protocol

if TYPE_CHECKING:
    from howdah.run.process.supervisor import Supervisor

Report = Callable[[protocol.Progress | protocol.Emit], None]


class ChildDied(Exception):
    """A child process ended in the middle of a job."""


class ProcessTask:
    """One job: what a child must know of it, and how far it is."""

    __slots__ = (
        "_gone",
        "begun",
        "deaths",
        "ending",
        "minder",
        "packet",
        "refused",
        "report",
        "stopped",
        "timeout",
    )

    def __init__(
        self,
        packet: bytes,
        report: Report,
        timeout: float | None,
        ending: asyncio.Future[protocol.Ended],
    ) -> None:
        self.packet: bytes = packet
        self.report: Report = report
        self.timeout: float | None = timeout  # seconds of work
        self.ending: asyncio.Future[protocol.Ended] = ending
        self.begun: bool = False  # whether its child has said so
        self.stopped: Exception | None = None  # why it must not go on, if so
        self.refused: ChildDied | None = None  # why its child is not believed, if so
        self.deaths: int = 0  # how many children have died before they began it
        self.minder: Supervisor | None = None  # whose child has it
        self._gone: asyncio.Event | None = None

    def end(self, how: protocol.Ended | Exception) -> None:
        """Tell whoever asked for it."""
        how = self.refused or how
        if not self.ending.done():
            if isinstance(how, Exception):
                self.ending.set_exception(how)
            else:
                self.ending.set_result(how)
        self.leave()

    def leave(self) -> None:
        """It is in no child's hands any more."""
        self.minder = None
        self.stopped = None
        if self._gone is not None:
            self._gone.set()

    async def cancelled(self) -> None:
        """Nobody wants it any more: return when no child works on it, or ever will."""
        if self.minder is not None:
            self._gone = asyncio.Event()
            self.minder.stop(self, ChildDied("the process of this job was stopped"))
            await self._gone.wait()
        elif not self.ending.cancelled():
            self.ending.exception()  # it ended in the same moment; seen, and refused
