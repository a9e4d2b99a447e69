"""Forced exit: `howdah worker` ends after its grace period, whatever its handlers do.

A thread hears the signals and watches the way out. It ends the process when the event loop is
blocked by a handler, when the worker does not come to an end, or when tasks and threads that
handlers have started keep the process alive. Jobs that could not be handed back are recovered
after `silent_after`, because the worker has not said goodbye.

The thread hears signals through `signal.set_wakeup_fd`, which is written to at once. Python's own
signal handlers wait for the main thread, which a handler may block. A call that holds the GIL
keeps this thread waiting, too.
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

from howdah.cli.ground import Exit, exit_for
from howdah.errors import HowdahError
from howdah.safe_logging import log_named

_log = log_named("howdah.worker")

BLOCKED = 5.0  # seconds after the grace that the event loop may stand still
BLOCKED_IN_A_HURRY = 2.0  # the same after a second signal
STOPPING = 60.0  # seconds that a worker may take to hand everything back: the database may be slow
ENDING = 2.0  # seconds that the loop, and then Python, may take to end after that
LOOK = 0.1  # seconds

SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOP, STOPPED = 0, 255  # what is said through the pipe beside the numbers of signals


class ForcedExit:
    """Ends the process if a worker that has to stop does not; enter it around the worker."""

    def __init__(self, grace: float, at_work: Callable[[], str]) -> None:
        self._grace = grace
        self._at_work = at_work
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._next = -1  # where an event loop wants to hear of signals
        self._signals = 0
        self._code = Exit.OK
        self._loop: asyncio.AbstractEventLoop | None = None
        self._told: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._watch, name="howdah-exit", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """The worker has stopped: what is left is to end the loop and the process."""
        if error is not None:
            self._code = exit_for(error) if isinstance(error, HowdahError) else Exit.FAILED
        self._say(STOPPED)

    def listen(self, told: Callable[[], None]) -> None:
        """Hear signals from now on; `told` is called for each in the running event loop."""
        self._loop, self._told = asyncio.get_running_loop(), told
        for number in SIGNALS:
            signal.signal(number, self._signalled)
        self._next = signal.set_wakeup_fd(self._write)

    def stop(self) -> None:
        """The worker has to stop; from now on its time counts."""
        self._say(STOP)

    def _say(self, word: int) -> None:
        with suppress(BlockingIOError):
            os.write(self._write, bytes([word]))

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        """The thread knows already, unless an event loop has asked for the signals since."""
        before = signal.set_wakeup_fd(self._write)
        if before != self._write:
            self._next = before
            self._say(number)

    # ── in the thread ─────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        word = self._hear(None)
        until = time.monotonic() + self._grace
        while word != STOPPED and self._signals < 2 and (left := until - time.monotonic()) > 0:
            word = self._hear(left)
        if word != STOPPED:
            self._watch_it_stop()
        self._watch_it_end()

    def _hear(self, seconds: float | None) -> int | None:
        """Wait so long for a word; a third signal ends the process, whatever is lost."""
        if not select.select([self._read], [], [], seconds)[0]:
            return None
        word = os.read(self._read, 1)[0]
        if word in SIGNALS:
            self._signals += 1
            if self._signals > 2:
                self._exit(Exit.FAILED, "a third signal asked for it")
            self._in_loop(self._told)
        elif word not in (STOP, STOPPED) and self._next >= 0 and not self._closed():
            with suppress(OSError):
                os.write(self._next, bytes([word]))
        return word

    def _in_loop(self, function: Callable[[], None]) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # it is closed
                self._loop.call_soon_threadsafe(function)

    def _closed(self) -> bool:
        return self._loop is None or self._loop.is_closed()

    def _watch_it_stop(self) -> None:
        """Wait until the worker has handed everything back, while its loop turns."""
        began = turned = time.monotonic()
        answer = threading.Event()
        self._in_loop(answer.set)
        while self._hear(LOOK) != STOPPED:
            now = time.monotonic()
            if answer.is_set():
                turned = now
                answer.clear()
                self._in_loop(answer.set)
            limit = BLOCKED if self._signals < 2 else BLOCKED_IN_A_HURRY
            if now - turned > limit:
                self._exit(Exit.FAILED, f"the event loop is blocked at {_where()}")
            if now - began > STOPPING:
                self._exit(Exit.FAILED, "the worker does not stop")

    def _watch_it_end(self) -> None:
        """Wait until the loop is closed, and then for the end of Python, if that has begun."""
        until = time.monotonic() + ENDING
        while not self._closed():
            self._hear(LOOK)
            if time.monotonic() > until:
                self._exit(self._code, f"these go on: {_left(self._loop)}")
        ending_since: float | None = None
        while ending_since is None or time.monotonic() - ending_since < ENDING:
            self._hear(LOOK)
            if ending_since is None and getattr(threading, "_SHUTTING_DOWN", True):
                ending_since = time.monotonic()
        self._exit(self._code, f"these go on: {_left(None)}")

    def _exit(self, code: Exit, why: str) -> None:
        at_work = self._at_work()
        _log.error("worker.forced_exit code=%d types=%s: %s", code, at_work or "none", why)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _where() -> str:
    """Say where in a handler's code the main thread is."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    frame = frames.get(threading.main_thread().ident or 0)
    here: FrameType | None = frame
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(("howdah.", "asyncio.")):
            break
        here, frame = frame, frame.f_back
    if here is None:
        return "an unknown place"
    return f"{here.f_code.co_filename}:{here.f_lineno} in {here.f_code.co_qualname}"


def _left(loop: asyncio.AbstractEventLoop | None) -> str:
    """Name what keeps the process alive."""
    names = [
        f"thread {one.name}"
        for one in threading.enumerate()
        if not one.daemon and one is not threading.main_thread()
    ]
    if loop is not None:
        names += [f"task {one.get_name()}" for one in asyncio.all_tasks(loop)]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(sorted(names)[:5]) + more or "unknown"
