"""Jobs that try to break the worker: one attack each, in all three run modes.

They are at the top level of a module, so that a child process can import them.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NoReturn, cast

import msgspec

from howdah import Backoff, Cancel, Fail, JobContext, Queue, Retry, Snooze
from howdah.handler import Run

_queue = Queue("postgresql://nobody@127.0.0.1:1/never-opened")


class StrRaises(Exception):
    def __str__(self) -> str:
        raise LookupError("no text")


class StrExits(Exception):
    def __str__(self) -> str:
        raise SystemExit(9)


class StrIsNoText(Exception):
    def __str__(self) -> str:
        return cast("str", 7)


class BrokenStr(str):
    """A str whose own methods raise."""

    __slots__ = ()

    def encode(self, *_: Any, **__: Any) -> bytes:
        raise MemoryError("encode")

    def replace(self, *_: Any, **__: Any) -> str:
        raise MemoryError("replace")

    def __len__(self) -> int:
        raise MemoryError("len")

    def __format__(self, spec: str) -> str:
        raise MemoryError("format")

    def __str__(self) -> str:
        raise MemoryError("str")

    def __repr__(self) -> str:
        raise MemoryError("repr")

    def __getitem__(self, at: Any) -> str:
        raise MemoryError("getitem")

    def __bool__(self) -> bool:
        raise MemoryError("bool")


class StrIsBroken(Exception):
    def __str__(self) -> str:
        return BrokenStr("broken text")


class NotesRaise(Exception):
    @property
    def __notes__(self) -> list[str]:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise KeyboardInterrupt


class NameRaises(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise ZeroDivisionError


class HasNoName(Exception, metaclass=NameRaises):
    pass


class ClassRaises:
    @property
    def __class__(self) -> type:  # type: ignore[override]
        raise SystemExit(4)


class Unfinished(Retry):
    """An outcome that does not call the __init__ of its base class."""

    def __init__(self) -> None:
        pass


class Dumped:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def model_dump(self, mode: str) -> object:
        raise self.error


class InstanceCheckRaises(type):
    def __instancecheck__(cls, instance: object) -> bool:
        raise KeyError("in a check")


class Rule(Exception, metaclass=InstanceCheckRaises):
    pass


def raises(error: BaseException) -> Callable[[JobContext], object]:
    def attack(ctx: JobContext) -> NoReturn:
        raise error

    return attack


def with_circular_causes(ctx: JobContext) -> NoReturn:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    first.__context__, second.__context__ = second, first
    raise first


def in_deep_groups(ctx: JobContext) -> NoReturn:
    error: Any = ValueError("at the bottom")
    for _ in range(5_000):
        error = ExceptionGroup("deeper", [error])
    raise error


def with_odd_notes(ctx: JobContext) -> NoReturn:
    error = ValueError("noted")
    error.__notes__ = cast("list[str]", StrRaises())
    raise error


def with_odd_syntax(ctx: JobContext) -> NoReturn:
    error = SyntaxError("odd")
    error.lineno, error.offset = cast("int", "x"), cast("int", [])
    error.text, error.filename = cast("str", object()), cast("str", StrRaises())
    raise error


def recursive(ctx: JobContext) -> object:
    items: list[object] = []
    items.append(items)
    return items


def changed_later(ctx: JobContext) -> NoReturn:
    outcome = Retry("later", after=1)
    outcome.after = cast("Any", "x")
    outcome.reason = cast("str", BrokenStr("why"))
    raise outcome


def marked(outcome: Any, **attributes: object) -> Any:
    for name, value in attributes.items():
        setattr(outcome, name, value)
    return outcome


def emits(kind: object, data: object) -> Callable[[JobContext], object]:
    def attack(ctx: JobContext) -> None:
        ctx.emit(cast("str", kind), data)

    return attack


# each fails its attempt with a reason
ATTACKS: dict[str, Callable[[JobContext], object]] = {
    "str raises": raises(StrRaises()),
    "str exits": raises(StrExits()),
    "str is no text": raises(StrIsNoText()),
    "str is broken": raises(StrIsBroken()),
    "str is gigantic": raises(ValueError("x" * 30_000_000)),
    "half a surrogate pair and NUL": raises(ValueError("\ud800\0")),
    "no name": raises(HasNoName("no name")),
    "circular causes": with_circular_causes,
    "deep groups": in_deep_groups,
    "notes raise": raises(NotesRaise("noted")),
    "odd notes": with_odd_notes,
    "odd syntax": with_odd_syntax,
    "recursion": lambda ctx: ATTACKS["recursion"](ctx),
    "system exit": lambda ctx: sys.exit("exit"),
    "keyboard interrupt": raises(KeyboardInterrupt()),
    "generator exit": raises(GeneratorExit()),
    "base exception": raises(BaseException("base")),
    "cancelled": raises(asyncio.CancelledError()),
    "stop iteration": raises(StopIteration(StrRaises())),
    "stop async iteration": raises(StopAsyncIteration()),
    "result is not json": lambda ctx: object(),
    "result is recursive": recursive,
    "result has no class": lambda ctx: ClassRaises(),
    "result cannot be encoded": lambda ctx: Dumped(KeyError("dump")),
    "result exits": lambda ctx: Dumped(SystemExit(5)),
    "result is cancelled": lambda ctx: Dumped(asyncio.CancelledError()),
    "result interrupts": lambda ctx: [Dumped(KeyboardInterrupt())],
    "result cannot be described": lambda ctx: Dumped(StrRaises()),
    "result is too large": lambda ctx: "x" * 300_000,
    "result is raw and invalid": lambda ctx: msgspec.Raw(b"{invalid"),
    "result is a raw number": lambda ctx: {"n": msgspec.Raw(b"1e400000")},
    "result is a raw surrogate": lambda ctx: [msgspec.Raw(rb'"\ud800"')],
    "result is a raw NUL": lambda ctx: [msgspec.Raw(rb'"\u0000"')],
    "result is raw and deep": lambda ctx: msgspec.Raw(b"[" * 40_000 + b"]" * 40_000),
    "retry after text": lambda ctx: Retry(after=cast("float", "x")),
    "retry in the past": lambda ctx: Retry(after=-1),
    "retry after NaN": lambda ctx: Retry(after=float("nan")),
    "retry after infinity": lambda ctx: Retry(after=float("inf")),
    "retry after too long": lambda ctx: Retry(after=1e300),
    "retry changed later": changed_later,
    "retry with an odd traceback": lambda ctx: marked(Retry("x", after=0), traceback=object()),
    "retry unfinished": lambda ctx: Unfinished(),
    "snooze for nothing": lambda ctx: Snooze(cast("float", None)),
    "snooze for too long": lambda ctx: Snooze(10**12),
    "fail with an object": raises(Fail(cast("str", object()))),
    "fail with an error": raises(Fail(cast("str", StrRaises()))),
    "fail with broken text": lambda ctx: Fail(BrokenStr("why")),
    "fail with a long text": lambda ctx: Fail("x" * 3_000_000),
    "fail with NUL": lambda ctx: Fail("\0\ud800"),
    "event without a name": emits("", None),
    "event of no kind": emits(object(), None),
    "event is raw and invalid": emits("raw", msgspec.Raw(b"]")),
    "event of a raw number": emits("raw", [msgspec.Raw(b"-1e400000")]),
    "event that cannot be encoded": emits("dump", Dumped(KeyError("dump"))),
    "event that exits": emits("dump", Dumped(SystemExit(3))),
    "progress of a bool": lambda ctx: ctx.progress(cast("float", True)),
    "progress of a huge number": lambda ctx: ctx.progress(10**5_000),
    "stage of no text": lambda ctx: ctx.progress(1, cast("str", 5)),
}

# each is stored as given, and its attempt completes
HARMLESS: dict[str, Callable[[JobContext], object]] = {
    "event of a broken kind": emits(BrokenStr("kind"), None),
    "stage of broken text": lambda ctx: [ctx.progress(1, BrokenStr("stage"))][1:],
    "result is raw": lambda ctx: {"n": msgspec.Raw(b"[1, 2]")},
    "result is tiny": lambda ctx: [5e-324, -0.0, 10**1_000],
}
_ALL = {**ATTACKS, **HARMLESS}


@_queue.job(run="process", max_attempts=1)
def misbehave(ctx: JobContext, attack: str) -> object:
    return _ALL[attack](ctx)


@_queue.job(name="misbehave_async", max_attempts=1)
async def misbehave_async(ctx: JobContext, attack: str) -> object:
    return _ALL[attack](ctx)


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(ValueError, KeyError, OSError, SyntaxError, UnicodeError, StopIteration, SystemExit),
        *(KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, BaseException, MemoryError),
        *(StrRaises, StrExits, StrIsNoText, StrIsBroken, NotesRaise, ImportError, NameError),
    )
}
OUTCOMES: dict[str, Callable[[Any, Any], object]] = {
    "Retry": lambda reason, after: Retry(reason, after=after),
    "Snooze": lambda reason, after: Snooze(after, reason),
    "Fail": lambda reason, after: Fail(reason, traceback=after),
    "Cancel": lambda reason, after: Cancel(reason),
    "late Retry": lambda reason, after: marked(Retry(), reason=reason, after=after),
    "late Snooze": lambda reason, after: marked(Snooze(0), reason=reason, after=after),
}


def run_script(ctx: JobContext, text: str) -> object:
    """Run a script: report, and then raise, return or decide an outcome."""
    script: dict[str, Any] = json.loads(text)
    for percent, stage, kind, data in script["reports"]:
        ctx.progress(percent, stage)
        ctx.emit(kind, data)
    how, what, value, more = script["end"]
    if how == "return":
        return msgspec.Raw(what.encode("utf-8", "surrogatepass")) if more else value
    if how == "decide":
        outcome = OUTCOMES[what](value, more)
        if script["raised"]:
            raise cast("Exception", outcome)
        return outcome
    error: BaseException = KINDS[what](value)
    if more is not None and what != "NotesRaise":
        error.__notes__ = cast("list[str]", more)
    error.__cause__ = error if script["raised"] else None
    raise error


@_queue.job(run="process")
def improvise(ctx: JobContext, script: str) -> object:
    return run_script(ctx, script)


async def improvise_async(ctx: JobContext, script: str) -> object:
    return run_script(ctx, script)


class RaisingBackoff(Backoff):
    def after(self, attempt: int) -> timedelta:
        raise ArithmeticError("no wait")


class TextBackoff(Backoff):
    def after(self, attempt: int) -> timedelta:
        return cast("timedelta", "soon")


BAD_RULES: dict[str, Any] = {
    "rule": {"retry_on": Rule},
    "backoff": {"backoff": RaisingBackoff()},
    "wait": {"backoff": TextBackoff()},
}


@_queue.job(run="process")
def bad() -> None:
    raise OSError("of the bad job")


@_queue.job(run="process")
def bad_result() -> str:
    return "of the bad job"


@_queue.job(run="process")
def bad_event(ctx: JobContext) -> None:
    ctx.emit("of the bad job")


async def bad_async() -> None:
    bad.function()


async def bad_result_async() -> str:
    return bad_result.function()


async def bad_event_async(ctx: JobContext) -> None:
    bad_event.function(ctx)


@_queue.job(run="process", **BAD_RULES["rule"])
def bad_by_rule() -> NoReturn:
    raise OSError("of the bad job")


@_queue.job(run="process", **BAD_RULES["backoff"])
def bad_by_backoff() -> NoReturn:
    raise OSError("of the bad job")


@_queue.job(run="process", **BAD_RULES["wait"])
def bad_by_wait() -> NoReturn:
    raise OSError("of the bad job")


JOBS_WITH_BAD_RULES: dict[str, Any] = {
    "rule": bad_by_rule,
    "backoff": bad_by_backoff,
    "wait": bad_by_wait,
}
BAD_JOBS: dict[bool, dict[str, Callable[..., Any]]] = {
    True: {"bad": bad_async, "bad_result": bad_result_async, "bad_event": bad_event_async},
    False: {job.handler.job_type: job.function for job in (bad, bad_result, bad_event)},
}


@_queue.job(run="process")
def innocent(n: int) -> int:
    return n


def register(queue: Queue, run: Run, timeout: float | None = None) -> Queue:
    """Register these jobs in a queue, all with the same run mode."""
    options = {"run": run, "timeout": timeout}
    queue.job(name="innocent", run=cast("Run", "process" if run == "process" else "thread"))(
        innocent.function
    )
    for job, async_function in (
        (misbehave, misbehave_async.function),
        (improvise, improvise_async),
    ):
        function = async_function if run == "async" else job.function
        queue.job(name=job.handler.job_type, max_attempts=1, **cast("Any", options))(function)
    return queue
