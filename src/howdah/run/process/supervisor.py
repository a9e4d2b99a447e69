"""Minder: looks after one child process, until it is reaped.

Gives it errands, a few ahead while they are short, and hears what becomes of them. An errand that
waits behind a long one is taken back. To stop the one at work its child is killed, after those
behind it were taken back. When a child dies, an errand that it had not begun is nobody's loss and
goes to another; whether it had is known, because it says so before it calls the handler, and the
pipe is read to its end. A child that sends what cannot be kept costs the job at work its attempt,
gets no more errands, and is killed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from howdah import payload
from howdah.run.process import protocol
from howdah.run.process.child_process import Process, begin
from howdah.run.process.inbox import THROUGH_THE_PIPE
from howdah.run.process.prefetch import Pace
from howdah.run.process.task import ChildDied, ProcessTask
from howdah.text.reasons import reason_of

LONG = 0.05  # seconds at work after which those behind are taken back
LATE = 1.0  # seconds to wait for the word of an errand that must have ended
STUCK = 10.0  # seconds in which a child takes what lies before it, if it is well
UNFINISHED = 10.0  # seconds in which a message that has begun to arrive must have its end
START = 60.0  # seconds in which it starts
DEATHS = 3  # children that may die before they begin an errand; then the errand is to blame


class Supervisor:
    """One child, and the errands in its hands: the first at work, the others behind it."""

    def __init__(self, take: Callable[[list[ProcessTask]], None]) -> None:
        self._take = take  # what comes back, or nothing when there is only room
        self._errands: deque[ProcessTask] = deque()
        self._pace = Pace()
        self._hearing = protocol.Hearing()
        self._distrust: Exception | None = None  # why nothing it says is believed any more
        self._retired = False  # whether it gets no more errands, and is killed
        self.fruitless: bool = True  # whether it has ended no errand, and not because of us
        self._look: asyncio.TimerHandle | None = None
        self._clock: asyncio.TimerHandle | None = None
        self._unfinished: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None
        self._end: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._gone = asyncio.Event()
        self._child = Process(self._readable, self.kill)

    @property
    def load(self) -> int:
        """How many errands are in its hands."""
        return len(self._errands)

    @property
    def has_room(self) -> bool:
        return len(self._errands) < self._pace.limit and self._end is None and not self._retired

    async def ready(self) -> None:
        """Wait until the child has started."""
        try:
            async with asyncio.timeout(START):
                await self._child.send(protocol.frame(begin()))
                await self._ready
        except TimeoutError:
            raise ChildDied(f"the process of this job did not start in {START:g} s") from None

    async def gone(self) -> None:
        """Wait until the child is reaped."""
        await self._gone.wait()

    def give(self, errand: ProcessTask) -> bool:
        """Give it one more; False if that one must wait until there is nothing before it."""
        if not self._child.tray.lay(errand.packet):
            if self._errands:
                return False
            self._pace.stall()  # nothing behind it, because it cannot be taken back
            self._child.tray.lay(THROUGH_THE_PIPE)
            frame = protocol.framed(errand.packet)
            self._sending = self._loop.create_task(self._child.send(frame))
        errand.minder = self
        self._errands.append(errand)
        if len(self._errands) == 1:
            self._pace.began()
            self._set_clock(errand)
        elif self._look is None:
            self._look = self._loop.call_later(LONG, self._look_after)
        return True

    # ── what the child says ───────────────────────────────────────────────────────────────

    def _readable(self) -> None:
        data = self._child.read()
        if data is None:
            return
        self._hear(data)
        self._expect_the_rest()
        if not data or self._distrust is not None:
            self.kill()
        elif self._errands and (why := self._errands[0].stopped) is not None:
            self.stop(self._errands[0], why)
        elif self._retired:
            self._retire()
        self._take([])

    def _hear(self, data: bytes) -> None:
        try:
            for message in self._hearing.hear(data):
                self._heard(message)
        except protocol.TooLong as error:
            self._distrust = ChildDied(f"the process of this job sent {error}")

    def _expect_the_rest(self) -> None:
        """Wait for the end of a message no longer than a child of ours takes to send it."""
        if self._unfinished is not None:
            self._unfinished.cancel()
            self._unfinished = None
        if self._hearing.unfinished:
            self._unfinished = self._loop.call_later(UNFINISHED, self._give_up_the_rest)

    def _give_up_the_rest(self) -> None:
        self._unfinished = None
        self._readable()  # perhaps more has come, while nobody looked
        if self._unfinished is None and self._hearing.unfinished:
            self._distrust = ChildDied("the process of this job sent a message without its end")
            self.kill()

    def _heard(self, message: protocol.FromChild | protocol.Bad) -> None:
        first = self._errands[0] if self._errands else None
        if isinstance(message, protocol.Ready):
            if not self._ready.done():
                self._ready.set_result(None)
        elif isinstance(message, protocol.Bad):
            self._refuse(message.why)
        elif isinstance(message, protocol.Progress | protocol.Emit):
            if first is not None and first.begun:
                self._report(first, message)
        elif first is None or first.begun is isinstance(message, protocol.Started):
            self._refuse("what does not follow")
        elif isinstance(message, protocol.Started):
            first.begun = True
            self._pace.began()
            self._set_clock(first)
        else:
            ended = self._checked(message)
            self._errands.popleft()
            self._pace.ended()
            self._set_clock(None)
            self.fruitless = False
            first.end(ended)

    def _report(self, errand: ProcessTask, message: protocol.Progress | protocol.Emit) -> None:
        try:
            errand.report(message)
        except Exception as error:
            self._refuse(f"a report that cannot be kept: {reason_of(error)}")

    def _checked(self, message: protocol.Ended) -> protocol.Ended:
        """Check a result, which must be JSON that the database can keep."""
        if isinstance(message, protocol.Returned) and message.result is not None:
            try:
                return protocol.Returned(
                    payload.encode_anew(message.result, "the result", limit=payload.MAX_BYTES)
                )
            except Exception as error:
                self._refuse(f"a result that cannot be kept: {reason_of(error)}")
        return message

    def _refuse(self, why: str) -> None:
        """Blame the job at work, if there is one, for what its child has sent."""
        self._retired = True
        if self._errands and (first := self._errands[0]).begun and first.refused is None:
            first.refused = ChildDied(reason_of(f"the process of this job sent {why}"))
            first.stopped = first.refused

    def _retire(self) -> None:
        """End the child as soon as it works on no job that is not to blame."""
        self._take_back()
        if not self._errands:
            self.kill()
        elif not (first := self._errands[0]).begun:
            self._loop.call_later(LATE, self._insist_on_beginning, first)

    def _insist_on_beginning(self, errand: ProcessTask) -> None:
        if errand.minder is self and not errand.begun:
            self.kill()

    # ── taking back and stopping ──────────────────────────────────────────────────────────

    def _look_after(self) -> None:
        """Let nothing wait behind an errand that takes long."""
        self._look = None
        if len(self._errands) < 2:
            return
        if (left := LONG - self._pace.so_far()) > 0:
            self._look = self._loop.call_later(left, self._look_after)
        else:
            self._take_back()

    def _take_back(self) -> None:
        """Take back what the child has not taken, for any other to do."""
        self._pace.stall()
        packets = set(self._child.tray.take_back())
        if THROUGH_THE_PIPE in packets:
            self._child.tray.lay(THROUGH_THE_PIPE)  # its frame is on its way already
        back = [errand for errand in self._errands if errand.packet in packets]
        if back:
            self._errands = deque(e for e in self._errands if e.packet not in packets)
            for errand in back:
                errand.leave()
            self._take(back)

    def stop(self, errand: ProcessTask, why: Exception) -> None:
        """Take an errand back, or kill the child that has taken it."""
        errand.stopped = why
        self.fruitless = False
        self._take_back()
        if errand.minder is not self:
            return
        if len(self._errands) == 1:
            self.kill()
        else:
            # The child has taken two, so the first has ended and the word of it is on its way:
            # wait for it, or an errand would be stopped that is innocent, or done.
            self._loop.call_later(LATE, self._insist, errand)

    def _insist(self, errand: ProcessTask) -> None:
        if errand.minder is self:
            self.kill()

    def _set_clock(self, errand: ProcessTask | None) -> None:
        """Time counts from the moment the child says that it begins, if it ever does."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        if errand is not None and errand.timeout is not None:
            seconds = errand.timeout if errand.begun else max(errand.timeout, STUCK)
            self._clock = self._loop.call_later(seconds, self._expire, errand, errand.begun)

    def _expire(self, errand: ProcessTask, begun: bool) -> None:
        self._readable()  # perhaps it has ended in time, or only now begun
        if errand.minder is not self or errand.begun is not begun:
            return
        if begun:
            self.stop(errand, TimeoutError())
        else:
            self.kill()

    # ── the end ───────────────────────────────────────────────────────────────────────────

    def kill(self) -> None:
        if self._end is None:
            self._end = self._loop.create_task(self._bury())
            self._take_back()
            self._child.kill()

    async def _bury(self) -> None:
        died = ChildDied(f"the process of this job ended with {await self._child.reaped()}")
        left = protocol.LONGEST  # what it has forked may go on for ever
        while self._distrust is None and left > 0 and (data := self._child.read()):
            left -= len(data)
            self._hear(data)
        if not self._ready.done():
            self._ready.set_exception(died)
            self._ready.exception()  # seen, also when nobody waits any more
        back: list[ProcessTask] = []
        for n, errand in enumerate(self._errands):
            errand.deaths += n == 0
            if errand.begun or self._distrust is not None or errand.deaths == DEATHS:
                errand.end(errand.stopped or self._distrust or died)
            else:
                errand.leave()
                back.append(errand)
        self._errands.clear()
        for pending in (self._look, self._clock, self._unfinished, self._sending):
            if pending is not None:
                pending.cancel()
        self._child.close()
        self._gone.set()
        self._take(back)
