"""Forced exit: `howdah worker` ends after its grace period, whatever its handlers do.

A thread receives the signals and watches the shutdown. It ends the process if a handler blocks
the event loop, if the worker does not stop, or if tasks and threads of handlers keep the process
alive. Jobs that could not be released are recovered after `silent_after`, because the worker
has not deregistered.

The thread gets signals through `signal.set_wakeup_fd`, which works at once. Python's own signal
handlers wait for the main thread, which a handler may block. A call that holds the GIL also
delays this thread.
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

from howdah.cli.exit_codes import ExitCode, exit_code_for
from howdah.errors import HowdahError
from howdah.safe_logging import log_named

_log = log_named("howdah.worker")

BLOCKED = 5.0  # seconds after the grace period that the event loop may be blocked
BLOCKED_AFTER_SECOND_SIGNAL = 2.0  # the same after a second signal
STOPPING = 60.0  # seconds that a worker may take to release its jobs: the database may be slow
ENDING = 2.0  # seconds that the loop, and then Python, may take to end after that
CHECK_EVERY = 0.1  # seconds

SIGNALS = (signal.SIGTERM, signal.SIGINT)
STOP, STOPPED = 0, 255  # messages in the pipe; others are numbers of signals


class ForcedExit:
    """Ends the process if the worker inside `with` does not stop when it has to."""

    def __init__(self, grace: float, at_work: Callable[[], str]) -> None:
        self._grace = grace
        self._at_work = at_work
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._next = -1  # the wakeup fd of the event loop
        self._signals = 0
        self._code = ExitCode.OK
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_signal: Callable[[], None] = lambda: None
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
        """The worker has stopped: now the loop and the process have to end."""
        if error is not None:
            self._code = exit_code_for(error) if isinstance(error, HowdahError) else ExitCode.FAILED
        self._send(STOPPED)

    def listen(self, on_signal: Callable[[], None]) -> None:
        """Handle signals from now on; each calls `on_signal` in the running event loop."""
        self._loop, self._on_signal = asyncio.get_running_loop(), on_signal
        for number in SIGNALS:
            signal.signal(number, self._signalled)
        self._next = signal.set_wakeup_fd(self._write)

    def stop(self) -> None:
        """The worker has to stop: its time limit starts now."""
        self._send(STOP)

    def _send(self, message: int) -> None:
        with suppress(BlockingIOError):
            os.write(self._write, bytes([message]))

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        """Pass the signal on, if an event loop has taken over the wakeup fd meanwhile."""
        before = signal.set_wakeup_fd(self._write)
        if before != self._write:
            self._next = before
            self._send(number)

    # ── in the thread ─────────────────────────────────────────────────────────────────────

    def _watch(self) -> None:
        message = self._receive(None)
        until = time.monotonic() + self._grace
        while message != STOPPED and self._signals < 2 and (left := until - time.monotonic()) > 0:
            message = self._receive(left)
        if message != STOPPED:
            self._wait_for_stop()
        self._wait_for_end()

    def _receive(self, seconds: float | None) -> int | None:
        """Wait this long for a message; a third signal ends the process at once."""
        if not select.select([self._read], [], [], seconds)[0]:
            return None
        message = os.read(self._read, 1)[0]
        if message in SIGNALS:
            self._signals += 1
            if self._signals > 2:
                self._exit(ExitCode.FAILED, "a third signal arrived")
            self._in_loop(self._on_signal)
        elif message not in (STOP, STOPPED) and self._next >= 0 and not self._closed():
            with suppress(OSError):
                os.write(self._next, bytes([message]))
        return message

    def _in_loop(self, function: Callable[[], None]) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(function)

    def _closed(self) -> bool:
        return self._loop is None or self._loop.is_closed()

    def _wait_for_stop(self) -> None:
        """Wait until the worker has released its jobs; check that its loop is not blocked."""
        began = responded = time.monotonic()
        answer = threading.Event()
        self._in_loop(answer.set)
        while self._receive(CHECK_EVERY) != STOPPED:
            now = time.monotonic()
            if answer.is_set():
                responded = now
                answer.clear()
                self._in_loop(answer.set)
            limit = BLOCKED if self._signals < 2 else BLOCKED_AFTER_SECOND_SIGNAL
            if now - responded > limit:
                self._exit(ExitCode.FAILED, f"the event loop is blocked at {_where()}")
            if now - began > STOPPING:
                self._exit(ExitCode.FAILED, "the worker does not stop")

    def _wait_for_end(self) -> None:
        """Wait until the loop is closed, and then until Python has ended."""
        until = time.monotonic() + ENDING
        while not self._closed():
            self._receive(CHECK_EVERY)
            if time.monotonic() > until:
                self._exit(self._code, f"still running: {_still_running(self._loop)}")
        ending_since: float | None = None
        while ending_since is None or time.monotonic() - ending_since < ENDING:
            self._receive(CHECK_EVERY)
            if ending_since is None and getattr(threading, "_SHUTTING_DOWN", True):
                ending_since = time.monotonic()
        self._exit(self._code, f"still running: {_still_running(None)}")

    def _exit(self, code: ExitCode, reason: str) -> None:
        at_work = self._at_work()
        _log.error("worker.forced_exit code=%d types=%s: %s", code, at_work or "none", reason)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _where() -> str:
    """Return where in the code of a handler the main thread is."""
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    frame = frames.get(threading.main_thread().ident or 0)
    last: FrameType | None = frame
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(("howdah.", "asyncio.")):
            break
        last, frame = frame, frame.f_back
    if last is None:
        return "an unknown place"
    return f"{last.f_code.co_filename}:{last.f_lineno} in {last.f_code.co_qualname}"


def _still_running(loop: asyncio.AbstractEventLoop | None) -> str:
    """Return the threads and tasks that keep the process alive."""
    names = [
        f"thread {thread.name}"
        for thread in threading.enumerate()
        if not thread.daemon and thread is not threading.main_thread()
    ]
    if loop is not None:
        names += [f"task {task.get_name()}" for task in asyncio.all_tasks(loop)]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(sorted(names)[:5]) + more or "unknown"
