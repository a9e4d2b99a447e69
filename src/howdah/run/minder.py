"""Minder: looks after one child process, until it is reaped.

Gives it errands, a few ahead while they are short, and hears what becomes of them. An errand that
waits behind a long one is taken back. To stop the one at work its child is killed, after those
behind it were taken back. When a child dies, an errand that it had not begun is nobody's loss and
goes to another; whether it had is known, because it says so before it calls the handler, and the
pipe is read to its end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import msgspec

from howdah.run import frames
from howdah.run.errand import ChildDied, Errand
from howdah.run.pace import Pace
from howdah.run.process import Process, begin
from howdah.run.tray import THROUGH_THE_PIPE

LONG = 0.05  # seconds at work after which those behind are taken back
LATE = 1.0  # seconds to wait for the word of an errand that must have ended
STUCK = 10.0  # seconds in which a child takes what lies before it, if it is well
START = 60.0  # seconds in which it starts


class Minder:
    """One child, and the errands in its hands: the first at work, the others behind it."""

    def __init__(self, take: Callable[[list[Errand]], None]) -> None:
        self._take = take  # what comes back, or nothing when there is only room
        self._errands: deque[Errand] = deque()
        self._pace = Pace()
        self._hearing = frames.Hearing()
        self._distrust: Exception | None = None  # why nothing it says is believed any more
        self._look: asyncio.TimerHandle | None = None
        self._clock: asyncio.TimerHandle | None = None
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
        return len(self._errands) < self._pace.limit and self._end is None

    async def ready(self) -> None:
        """Wait until the child has started."""
        try:
            async with asyncio.timeout(START):
                await self._child.send(frames.frame(begin()))
                await self._ready
        except TimeoutError:
            raise ChildDied(f"the process of this job did not start in {START:g} s") from None

    async def gone(self) -> None:
        """Wait until the child is reaped."""
        await self._gone.wait()

    def give(self, errand: Errand) -> bool:
        """Give it one more; False if that one must wait until there is nothing before it."""
        if not self._child.tray.lay(errand.packet):
            if self._errands:
                return False
            self._pace.stall()  # nothing behind it, because it cannot be taken back
            self._child.tray.lay(THROUGH_THE_PIPE)
            frame = frames.framed(errand.packet)
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
        if not data or self._distrust is not None:
            self.kill()
        elif self._errands and (why := self._errands[0].stopped) is not None:
            self.stop(self._errands[0], why)
        self._take([])

    def _hear(self, data: bytes) -> None:
        try:
            for message in self._hearing.hear(data):
                self._heard(message)
        except frames.TooLong as error:
            self._distrust = ChildDied(f"the process of this job sent {error}")
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            self._distrust = ChildDied(f"the process of this job sent what is no message: {error}")
        except Exception as error:  # a report that is refused
            self._distrust = error

    def _heard(self, message: frames.FromChild) -> None:
        first = self._errands[0] if self._errands else None
        if isinstance(message, frames.Ready):
            if not self._ready.done():
                self._ready.set_result(None)
        elif isinstance(message, frames.Progress | frames.Emit):
            if first is not None and first.begun:
                first.report(message)
        elif first is None or first.begun is isinstance(message, frames.Started):
            raise ChildDied("the process of this job sent what does not follow")
        elif isinstance(message, frames.Started):
            first.begun = True
            self._pace.began()
            self._set_clock(first)
        else:
            self._errands.popleft()
            self._pace.ended()
            self._set_clock(None)
            first.end(message)

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

    def stop(self, errand: Errand, why: Exception) -> None:
        """Take an errand back, or kill the child that has taken it."""
        errand.stopped = why
        self._take_back()
        if errand.minder is not self:
            return
        if len(self._errands) == 1:
            self.kill()
        else:
            # The child has taken two, so the first has ended and the word of it is on its way:
            # wait for it, or an errand would be stopped that is innocent, or done.
            self._loop.call_later(LATE, self._insist, errand)

    def _insist(self, errand: Errand) -> None:
        if errand.minder is self:
            self.kill()

    def _set_clock(self, errand: Errand | None) -> None:
        """Time counts from the moment the child says that it begins, if it ever does."""
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None
        if errand is not None and errand.timeout is not None:
            seconds = errand.timeout if errand.begun else max(errand.timeout, STUCK)
            self._clock = self._loop.call_later(seconds, self._expire, errand, errand.begun)

    def _expire(self, errand: Errand, begun: bool) -> None:
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
        while self._distrust is None and (data := self._child.read()):
            self._hear(data)
        if not self._ready.done():
            self._ready.set_exception(died)
            self._ready.exception()  # seen, also when nobody waits any more
        back: list[Errand] = []
        for errand in self._errands:
            if errand.begun or self._distrust is not None:
                errand.end(errand.stopped or self._distrust or died)
            else:
                errand.leave()
                back.append(errand)
        self._errands.clear()
        for pending in (self._look, self._clock, self._sending):
            if pending is not None:
                pending.cancel()
        self._child.close()
        self._gone.set()
        self._take(back)
