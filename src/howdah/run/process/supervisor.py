"""Supervisor: sends tasks to one child process, and reads how they ended.

Short tasks are sent a few ahead. Tasks that wait behind a long one are taken back. To stop the
running task, its child is killed, after the waiting ones were taken back. When a child dies, a task
that it had not begun goes to another child. A child sends Started before it calls the handler, and
the pipe is read to its end, so this is always known. If a child sends a bad message, the running
job loses its attempt, and the child gets no more tasks and is killed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from howdah import payload
from howdah.run.process import protocol
from howdah.run.process.child_process import ChildProcess, begin_message
from howdah.run.process.inbox import SENT_BY_PIPE
from howdah.run.process.prefetch import Prefetch
from howdah.run.process.task import ChildDied, ProcessTask
from howdah.text.reasons import reason_of

LONG = 0.05  # seconds after which the tasks behind a running one are taken back
LATE = 1.0  # seconds to wait for the message of a task that must have ended
STUCK = 10.0  # seconds in which a healthy child takes a task from its inbox
UNFINISHED = 10.0  # seconds in which the rest of a message must arrive
START = 60.0  # seconds in which a child must start
DEATHS = 3  # children that may die before they begin a task; then the task fails


class Supervisor:
    """One child and its tasks: the first one runs, the others wait in its inbox."""

    def __init__(self, return_tasks: Callable[[list[ProcessTask]], None]) -> None:
        self._return_tasks = return_tasks  # called with none if there is only room for more
        self._tasks: deque[ProcessTask] = deque()
        self._prefetch = Prefetch()
        self._reader = protocol.MessageReader()
        self._unreadable: Exception | None = None  # why no more messages are read from the child
        self._retired = False  # whether the child gets no more tasks, and is killed
        self.ended_none: bool = True  # whether it ended no task, and we did not stop one
        self._long_timer: asyncio.TimerHandle | None = None
        self._timeout_timer: asyncio.TimerHandle | None = None
        self._unfinished_timer: asyncio.TimerHandle | None = None
        self._sending: set[asyncio.Task[None]] = set()
        self._reaping: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._gone = asyncio.Event()
        self._child = ChildProcess(self._readable, self.kill)

    @property
    def load(self) -> int:
        """How many tasks the child has."""
        return len(self._tasks)

    @property
    def has_room(self) -> bool:
        room = len(self._tasks) < self._prefetch.limit
        return room and self._reaping is None and not self._retired

    async def ready(self) -> None:
        """Wait until the child has started."""
        try:
            async with asyncio.timeout(START):
                await self._child.send(protocol.frame(begin_message()))
                await self._ready
        except TimeoutError:
            raise ChildDied(f"the process of this job did not start within {START:g} s") from None

    async def gone(self) -> None:
        """Wait until the child has ended and was reaped."""
        await self._gone.wait()

    def give(self, task: ProcessTask) -> bool:
        """Send a task to the child; False if it is too large to be sent ahead."""
        if not self._child.inbox.put(task.packet):
            if self._tasks:
                return False
            self._prefetch.stop()  # no task may wait behind it, because it cannot be taken back
            self._child.inbox.put(SENT_BY_PIPE)
            self._send(protocol.framed(task.packet))
        task.supervisor = self
        self._tasks.append(task)
        if len(self._tasks) == 1:
            self._prefetch.began()
            self._set_timeout(task)
        elif self._long_timer is None:
            self._long_timer = self._loop.call_later(LONG, self._check_long)
        return True

    def answer(self, answer: protocol.StepAnswer) -> None:
        """Send the answer to a request of the running task."""
        self._send(protocol.frame(answer))

    def _send(self, frame: bytes) -> None:
        sending = self._loop.create_task(self._child.send(frame))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    # ── messages of the child ─────────────────────────────────────────────────────────────

    def _readable(self) -> None:
        data = self._child.read()
        if data is None:
            return
        self._read(data)
        self._expect_the_rest()
        if not data or self._unreadable is not None:
            self.kill()
        elif self._tasks and (why := self._tasks[0].stopped) is not None:
            self.stop(self._tasks[0], why)
        elif self._retired:
            self._retire()
        self._return_tasks([])

    def _read(self, data: bytes) -> None:
        try:
            for message in self._reader.feed(data):
                self._received(message)
        except protocol.TooLong as error:
            self._unreadable = ChildDied(f"the process of this job sent {error}")

    def _expect_the_rest(self) -> None:
        """Wait for the rest of a message, for a limited time."""
        if self._unfinished_timer is not None:
            self._unfinished_timer.cancel()
            self._unfinished_timer = None
        if self._reader.unfinished:
            self._unfinished_timer = self._loop.call_later(UNFINISHED, self._give_up_the_rest)

    def _give_up_the_rest(self) -> None:
        self._unfinished_timer = None
        self._readable()  # more may have arrived while the loop was blocked
        if self._unfinished_timer is None and self._reader.unfinished:
            self._unreadable = ChildDied("the process of this job sent a message without its end")
            self.kill()

    def _received(self, message: protocol.FromChild | protocol.BadMessage) -> None:
        first = self._tasks[0] if self._tasks else None
        if isinstance(message, protocol.Ready):
            if not self._ready.done():
                self._ready.set_result(None)
        elif isinstance(message, protocol.BadMessage):
            self._refuse(message.why)
        elif isinstance(message, protocol.Report):
            if first is not None and first.begun:
                self._report(first, message)
        elif first is None or first.begun is isinstance(message, protocol.Started):
            self._refuse("a message in the wrong order")
        elif isinstance(message, protocol.Started):
            first.begun = True
            self._prefetch.began()
            self._set_timeout(first)
        else:
            ended = self._checked(message)
            self._tasks.popleft()
            self._prefetch.ended()
            self._set_timeout(None)
            self.ended_none = False
            first.end(ended)

    def _report(self, task: ProcessTask, message: protocol.Report) -> None:
        try:
            task.report(task, message)
        except Exception as error:
            self._refuse(f"a report that cannot be stored: {reason_of(error)}")

    def _checked(self, message: protocol.Ended) -> protocol.Ended:
        """Check that a result is JSON that the database can store."""
        if isinstance(message, protocol.Returned) and message.result is not None:
            try:
                return protocol.Returned(
                    payload.reencode(message.result, "the result", limit=payload.MAX_BYTES)
                )
            except Exception as error:
                self._refuse(f"a result that cannot be stored: {reason_of(error)}")
        return message

    def _refuse(self, why: str) -> None:
        """Retire the child after a bad message; the running job, if any, loses its attempt."""
        self._retired = True
        if self._tasks and (first := self._tasks[0]).begun and first.refused is None:
            first.refused = ChildDied(reason_of(f"the process of this job sent {why}"))
            first.stopped = first.refused

    def _retire(self) -> None:
        """Kill the child as soon as that stops no other job."""
        self._take_back()
        if not self._tasks:
            self.kill()
        elif not (first := self._tasks[0]).begun:
            self._loop.call_later(LATE, self._kill_unless_begun, first)

    def _kill_unless_begun(self, task: ProcessTask) -> None:
        if task.supervisor is self and not task.begun:
            self.kill()

    # ── taking back and stopping ──────────────────────────────────────────────────────────

    def _check_long(self) -> None:
        """Take back the tasks that wait behind a long one."""
        self._long_timer = None
        if len(self._tasks) < 2:
            return
        if (left := LONG - self._prefetch.elapsed()) > 0:
            self._long_timer = self._loop.call_later(left, self._check_long)
        else:
            self._take_back()

    def _take_back(self) -> None:
        """Take back the tasks that the child has not taken, for other children."""
        self._prefetch.stop()
        packets = set(self._child.inbox.take_back())
        if SENT_BY_PIPE in packets:
            self._child.inbox.put(SENT_BY_PIPE)  # its frame is in the pipe already
        returned = [task for task in self._tasks if task.packet in packets]
        if returned:
            self._tasks = deque(task for task in self._tasks if task.packet not in packets)
            for task in returned:
                task.leave_child()
            self._return_tasks(returned)

    def stop(self, task: ProcessTask, why: Exception) -> None:
        """Take a task back, or kill the child that has taken it."""
        task.stopped = why
        self.ended_none = False
        self._take_back()
        if task.supervisor is not self:
            return
        if len(self._tasks) == 1:
            self.kill()
        else:
            # The child has taken two, so the first has ended and its message is on the way:
            # wait for it, so that no other job and no ended one is stopped.
            self._loop.call_later(LATE, self._kill_if_still_here, task)

    def _kill_if_still_here(self, task: ProcessTask) -> None:
        if task.supervisor is self:
            self.kill()

    def _set_timeout(self, task: ProcessTask | None) -> None:
        """Start the timeout of a task: it counts from the Started message."""
        if self._timeout_timer is not None:
            self._timeout_timer.cancel()
            self._timeout_timer = None
        if task is not None and task.timeout is not None:
            seconds = task.timeout if task.begun else max(task.timeout, STUCK)
            self._timeout_timer = self._loop.call_later(seconds, self._expire, task, task.begun)

    def _expire(self, task: ProcessTask, begun: bool) -> None:
        self._readable()  # its message that it has ended or begun may have arrived
        if task.supervisor is not self or task.begun is not begun:
            return
        if begun:
            self.stop(task, TimeoutError())
        else:
            self.kill()

    # ── the end ───────────────────────────────────────────────────────────────────────────

    def kill(self) -> None:
        if self._reaping is None:
            self._reaping = self._loop.create_task(self._reap())
            self._take_back()
            self._child.kill()

    async def _reap(self) -> None:
        died = ChildDied(f"the process of this job ended with {await self._child.reaped()}")
        left = protocol.LONGEST  # a process that the handler forked may write for ever
        while self._unreadable is None and left > 0 and (data := self._child.read()):
            left -= len(data)
            self._read(data)
        if not self._ready.done():
            self._ready.set_exception(died)
            self._ready.exception()  # mark it as retrieved: perhaps nobody waits any more
        returned: list[ProcessTask] = []
        for n, task in enumerate(self._tasks):
            task.deaths += n == 0
            if task.begun or self._unreadable is not None or task.deaths == DEATHS:
                task.end(task.stopped or self._unreadable or died)
            else:
                task.leave_child()
                returned.append(task)
        self._tasks.clear()
        timers = (self._long_timer, self._timeout_timer, self._unfinished_timer)
        for pending in (*timers, *self._sending):
            if pending is not None:
                pending.cancel()
        self._child.close()
        self._gone.set()
        self._return_tasks(returned)
