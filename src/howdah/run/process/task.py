"""Task: one job that a child process runs.

A task waits in pool.py until a child has room. Then the supervisor of that child has it until the
task has ended or is taken back. The caller awaits `ending`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from howdah.run.process import protocol

if TYPE_CHECKING:
    from howdah.run.process.supervisor import Supervisor

Report = Callable[["ProcessTask", protocol.Report], None]


class ChildDied(Exception):
    """A child process ended in the middle of a job."""


class ProcessTask:
    """One job: the message to the child, and its state."""

    __slots__ = (
        "_gone",
        "begun",
        "deaths",
        "ending",
        "packet",
        "refused",
        "report",
        "stopped",
        "supervisor",
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
        self.timeout: float | None = timeout  # seconds that the handler may run
        self.ending: asyncio.Future[protocol.Ended] = ending
        self.begun: bool = False  # whether its child has sent Started
        self.stopped: Exception | None = None  # why it must be stopped
        self.refused: ChildDied | None = None  # which bad message its child has sent
        self.deaths: int = 0  # how many children have died before they began it
        self.supervisor: Supervisor | None = None  # of the child that has it
        self._gone: asyncio.Event | None = None

    def end(self, ended: protocol.Ended | Exception) -> None:
        """Set the ending; a bad message of the child goes before it."""
        ended = self.refused or ended
        if not self.ending.done():
            if isinstance(ended, Exception):
                self.ending.set_exception(ended)
            else:
                self.ending.set_result(ended)
        self.leave_child()

    def leave_child(self) -> None:
        """Note that no child has the task any more."""
        self.supervisor = None
        self.stopped = None
        if self._gone is not None:
            self._gone.set()

    async def cancelled(self) -> None:
        """Stop the task; returns when no child runs it or can begin it."""
        if self.supervisor is not None:
            self._gone = asyncio.Event()
            self.supervisor.stop(self, ChildDied("the process of this job was stopped"))
            await self._gone.wait()
        elif not self.ending.cancelled():
            self.ending.exception()  # it ended at the same time: mark the exception as retrieved
