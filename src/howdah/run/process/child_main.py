"""Child main: the program of a child process; child_process.py starts it.

It takes one job after another from its inbox, sends Started, runs the handler, and sends how it
ended. It imports the module of the handler and finds the function by name, so only functions of the
program can run. When the worker dies, this process ends at once, in the middle of a job.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
import signal
import socket
import sys
import threading
from concurrent.futures import Future
from functools import cache
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from queue import SimpleQueue
from types import ModuleType
from typing import Any

import msgspec

from howdah.errors import HowdahError, StaleLease
from howdah.handler import Handler
from howdah.job import Claim
from howdah.outcomes import Cancel, Complete, Fail, Retry, Snooze, Suspend
from howdah.run.context import JobContext, current, lose, outcome_unless_left
from howdah.run.outcome_of import outcome_of_error, outcome_of_value
from howdah.run.process import protocol
from howdah.run.process.import_check import IMPORTED_MAIN
from howdah.run.process.inbox import SENT_BY_PIPE, ChildInbox
from howdah.run.report_checks import check_checkpoint, check_event, check_progress
from howdah.run.steps import Answer, StepBackend
from howdah.steps import Request
from howdah.text.reasons import describe, reason_of

_STARTED = protocol.frame(protocol.Started())
_NO_MESSAGE = (msgspec.MsgspecError, RecursionError, ValueError)
_main: str | None = None


class _Pipe:
    """The pipe to the worker; also the reporter of a job's context, and stores its steps."""

    completions: None = None

    def __init__(self, pipe: socket.socket) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._asked: dict[int, Answer] = {}  # what the worker has not answered

    def send(self, message: protocol.FromChild) -> None:
        self.write(protocol.frame(message))

    def write(self, framed: bytes) -> None:
        with self._lock:
            self._pipe.sendall(framed)

    def progress(self, claim: Claim, percent: float | None, stage: str | None) -> None:
        self.send(protocol.Progress(*check_progress(percent, stage)))

    def emit(self, claim: Claim, kind: str, data: object) -> None:
        self.send(protocol.Emit(*check_event(kind, data)))

    def checkpoint(self, claim: Claim, data: object) -> None:
        self.send(protocol.Checkpoint(check_checkpoint(data)))

    @property
    def steps(self) -> StepBackend:
        return self

    def submit(self, claim: Claim, request: Request) -> Answer:
        """Ask the worker; `answered` sets the answer, in another thread."""
        number = next(self._numbers)
        answer = self._asked[number] = Future()
        self.send(protocol.StepRequest(number, request))
        return answer

    def answered(self, message: protocol.StepAnswer) -> None:
        answer = self._asked.pop(message.number, None)
        if answer is None or answer.done():
            return
        if message.error is None:
            answer.set_result(message.steps)
        else:
            kind = StaleLease if message.stale else HowdahError
            answer.set_exception(kind(message.error))

    def receive(self) -> protocol.ToChild | None:
        header = self._exactly(protocol.HEADER)
        if header is None:
            return None
        body = self._exactly(protocol.length(header))
        return None if body is None else protocol.to_child.decode(body)

    def _exactly(self, size: int) -> bytes | None:
        parts: list[bytes] = []
        while size:
            try:
                part = self._pipe.recv(min(size, 65536))
            except ConnectionError:  # the worker died before it had read everything
                return None
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


@cache
def _handler(module: str, qualname: str) -> Handler:
    target: Any = import_module(module) if module != "__main__" else _program()
    for name in qualname.split("."):
        target = getattr(target, name)
    handler = getattr(target, "handler", None)
    if not isinstance(handler, Handler):
        raise LookupError(
            f"{module}.{qualname} is not a registered job there: a process handler must be "
            "defined at the top level of a module"
        )
    return handler


def _program() -> ModuleType:
    """Import the file of the worker's program, under a name that is not `__main__`."""
    if _main is None:
        raise LookupError(
            "the handler is defined in a program that has no file to import: put it into a module"
        )
    name = IMPORTED_MAIN
    has_suffix = _main.endswith((".py", ".pyc"))  # a program may have any name
    loader = None if has_suffix else SourceFileLoader(name, _main)
    spec = spec_from_file_location(name, _main, loader=loader)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run(job: protocol.RunJob, pipe: _Pipe) -> protocol.Ended:
    try:
        handler = _handler(job.module, job.qualname)
    except BaseException as error:
        line = reason_of(f"cannot load the handler: {describe(error)}")
        return protocol.Raised(line, None, False)
    context = JobContext(job.claim, pipe)
    token = current.set(context)
    try:
        arguments = handler.decode(job.claim.data)
        value = handler.call(arguments, context)
        if inspect.isawaitable(value):
            value = asyncio.run(_awaited(value))
        outcome = outcome_of_value(value, handler, job.claim)
    except BaseException as error:
        outcome = outcome_of_error(error, handler, job.claim)
    outcome = outcome_unless_left(context, outcome)
    current.reset(token)
    lose(context, "its attempt has ended")  # code that still runs must not report for the next job
    match outcome:
        case Complete(result):
            return protocol.Returned(result)
        case Retry() if outcome.traceback is not None:
            return protocol.Raised(outcome.reason, outcome.traceback, True)
        case Fail():
            return protocol.Raised(outcome.reason, outcome.traceback, False)
        case Retry() | Snooze():
            after = None if outcome.after is None else outcome.after.total_seconds()
            name = "Retry" if isinstance(outcome, Retry) else "Snooze"
            return protocol.Decided(name, outcome.reason, after)
        case Suspend(blocked):
            return protocol.Left(list(blocked))
        case Cancel():
            return protocol.Decided("Cancel", outcome.reason, None)
        case _:
            raise AssertionError(outcome)


async def _awaited(value: Any) -> Any:
    return await value


def _listen(pipe: _Pipe, large: SimpleQueue[protocol.RunJob]) -> None:
    """Read from the worker in a thread; if the worker dies, end this process at once."""
    try:
        while (message := pipe.receive()) is not None:
            if isinstance(message, protocol.RunJob):
                large.put(message)
            elif isinstance(message, protocol.StepAnswer):
                pipe.answered(message)
            else:
                os._exit(1)
    except _NO_MESSAGE:
        os._exit(1)  # the sender is not a worker of ours
    os._exit(0)


def _serve(pipe: _Pipe, inbox: ChildInbox, large: SimpleQueue[protocol.RunJob]) -> None:
    """Run the jobs of the inbox. The end of a job is sent together with the next Started."""
    this_process, ended = os.getpid(), b""
    while True:
        packet = inbox.get_nowait()
        if packet is None:
            if ended:
                pipe.write(ended)
                ended = b""
            packet = inbox.get()
        pipe.write(ended + _STARTED)
        job = large.get() if packet == SENT_BY_PIPE else _job(packet)
        ended = protocol.frame(_run(job, pipe))
        if os.getpid() != this_process:
            os._exit(0)  # the handler has forked, and this is the forked process


def _job(packet: bytes) -> protocol.RunJob:
    try:
        job = protocol.to_child.decode(packet)
    except _NO_MESSAGE:
        os._exit(1)
    if not isinstance(job, protocol.RunJob):
        os._exit(1)
    return job


def main() -> None:
    global _main
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    del sys.argv[3:]  # the folders of howdah are not for handlers
    for end in sys.argv[1:]:
        os.set_inheritable(int(end), False)  # programs that a handler starts must not get them
    pipe = _Pipe(socket.socket(fileno=int(sys.argv[1])))
    inbox = ChildInbox(int(sys.argv[2]))
    begin = pipe.receive()
    assert isinstance(begin, protocol.Begin)
    sys.path[:] = begin.path
    _main = begin.main
    if begin.log is not None:
        begin.log.begin()
    large: SimpleQueue[protocol.RunJob] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, large), daemon=True).start()
    pipe.send(protocol.Ready())
    _serve(pipe, inbox, large)
