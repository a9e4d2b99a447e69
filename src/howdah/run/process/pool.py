"""Pool: the child processes of a worker.

A child is started when it is first needed and runs one job after another; its supervisor keeps it
busy. If a job times out or is lost, its child is killed (SIGKILL); no other job is affected, and
the next job gets a new child. Jobs are sent as JSON to child_main.py. If children die one after
another without ending a job, the pause before a new child grows.
"""

from __future__ import annotations

import asyncio
from collections import deque

from howdah.growing_pause import GrowingPause
from howdah.handler import Handler
from howdah.job import Claim
from howdah.run.process import protocol
from howdah.run.process.import_check import module_name
from howdah.run.process.supervisor import Supervisor
from howdah.run.process.task import ProcessTask, Report

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds before a new child, after some that ended no job


class ProcessPool:
    """A pool of child processes, at most `size` of them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: deque[ProcessTask] = deque()
        self._supervisors: list[Supervisor] = []
        self._children: set[asyncio.Task[None]] = set()  # of each child, from its start to its end
        self._useless_children = 0  # children in a row that ended no job
        self._growing_pause = GrowingPause(FIRST_PAUSE, LONGEST_PAUSE)
        self._pause: asyncio.TimerHandle | None = None  # before the next child
        self._closed = False
        self._loop = asyncio.get_running_loop()

    async def run(
        self, handler: Handler, claim: Claim, report: Report, timeout: float | None
    ) -> protocol.Ended:
        """Run one job in a child; after `timeout`, or if cancelled, the child is killed."""
        function = handler.function
        packet = protocol.encode(
            protocol.RunJob(module_name(function), function.__qualname__, claim)
        )
        task = ProcessTask(packet, report, timeout, self._loop.create_future())
        self._waiting.append(task)
        self._assign()
        try:
            return await task.ending
        except asyncio.CancelledError:
            await task.cancelled()
            raise

    async def close(self) -> None:
        self._closed = True
        if self._pause is not None:
            self._pause.cancel()
        for child in self._children:
            child.cancel()
        await asyncio.gather(*self._children, return_exceptions=True)

    def _return_tasks(self, returned: list[ProcessTask]) -> None:
        """Put tasks that a child gave back in front of all others, and assign tasks again."""
        self._waiting.extendleft(reversed(returned))
        self._assign()

    def _assign(self) -> None:
        """Give waiting tasks to children that have room, to the least busy one first."""
        while self._waiting and not self._closed:
            if self._waiting[0].ending.done():  # cancelled while it waited
                self._waiting.popleft()
                continue
            supervisor = self._least_busy()
            if supervisor is None or supervisor.load:
                self._start_children()
            if supervisor is None or not supervisor.give(self._waiting[0]):
                return
            self._waiting.popleft()

    def _least_busy(self) -> Supervisor | None:
        least_busy: Supervisor | None = None
        for supervisor in self._supervisors:
            if supervisor.has_room and (least_busy is None or supervisor.load < least_busy.load):
                least_busy = supervisor
        return least_busy

    def _start_children(self) -> None:
        """Start children for the waiting tasks, up to the size of the pool."""
        while len(self._children) < self._size and self._pause is None:
            if len(self._children) - len(self._supervisors) >= len(self._waiting):
                return
            child = self._loop.create_task(self._run_child())
            self._children.add(child)
            child.add_done_callback(self._child_ended)

    def _child_ended(self, child: asyncio.Task[None]) -> None:
        self._children.discard(child)
        self._assign()

    def _count_useless(self, ended_none: bool) -> None:
        """Pause before the next child after several children that ended no job."""
        if not ended_none:
            self._useless_children = 0
            self._growing_pause.reset()
            return
        self._useless_children += 1
        if self._useless_children > 1 and self._pause is None and not self._closed:
            self._pause = self._loop.call_later(self._growing_pause.next(), self._end_pause)

    def _end_pause(self) -> None:
        self._pause = None
        self._assign()

    async def _run_child(self) -> None:
        """Start a child and wait for its end; if it cannot start, the first waiting task fails."""
        supervisor: Supervisor | None = None
        try:
            supervisor = Supervisor(self._return_tasks)
            await supervisor.ready()
            self._supervisors.append(supervisor)
            self._assign()
            await supervisor.gone()
        except Exception as error:
            waiting = (task for task in self._waiting if not task.ending.done())
            if (first := next(waiting, None)) is not None:
                first.end(error)
        finally:
            if supervisor is not None:
                supervisor.kill()
                await supervisor.gone()
                if supervisor in self._supervisors:
                    self._supervisors.remove(supervisor)
            self._count_useless(supervisor is None or supervisor.ended_none)
