"""Steps of an attempt: run a step once, sleep, and wait for a signal.

A step is known by its name and its number among the calls with this name. These must come from one
task or thread: the order of two that run side by side may differ in the next attempt. To sleep, the
handler is left by an exception, and the job is put back. When it runs again, it begins at the top,
and what has ended returns at once.

The same code serves async and plain handlers. It is a coroutine that waits only for answers of the
database. In an async handler these are awaited. In a plain one `_block` blocks its thread, so the
coroutine ends at its first step.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from howdah import payload
from howdah.checks.durations import check_wait
from howdah.checks.signals import check_step_name
from howdah.errors import BadInput, ResultDoesNotFit, SignalTimeout, StepMismatch
from howdah.job import Claim
from howdah.outcomes import Fail, Suspended
from howdah.result import ResultType
from howdah.steps import (
    CHECKPOINT,
    MAX_NAME,
    AwaitSignal,
    Kind,
    LoadSteps,
    Request,
    SaveStep,
    StepKey,
    StoredStep,
)
from howdah.text.reasons import name_of, reason_of, shown

SHORT = 1.0  # seconds: a shorter sleep waits in its slot
OTHERS = 5  # steps of the event loop in which others may go on before the handler is left

Answer = Future[list[StoredStep]]
Wait = Callable[[Answer], Awaitable[list[StoredStep]]]


_at_work_in: ContextVar[StepKey | None] = ContextVar("howdah_step", default=None)


class StepBackend(Protocol):
    """Stores the steps of jobs. Safe in any thread."""

    def submit(self, claim: Claim, request: Request) -> Answer: ...


class Steps:
    """The steps of one attempt."""

    def __init__(self, claim: Claim, backend: StepBackend, refuse_if_lost: Callable[[], None]):
        self._claim = claim
        self._backend = backend
        self._refuse_if_lost = refuse_if_lost
        self._calls: dict[tuple[Kind, str], tuple[object, int]] = {}  # who calls, and how often
        self._loading: Answer | None = None
        self._stored: dict[StepKey, tuple[StoredStep, float]] | None = None  # and when it was read
        self._at_work = 0  # calls that are not blocked
        self._idle = asyncio.Event()
        self._blocked: dict[StepKey, None] = {}
        self.left: bool = False  # whether a call has left the handler

    @property
    def at_work(self) -> bool:
        """Whether a step or a wait has begun and has not ended."""
        return self._at_work > 0

    # ── what a handler calls ──────────────────────────────────────────────────────────────

    def step(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if not callable(function):
            raise BadInput(
                f"a step is given a function and its arguments, not {shown(function)}: "
                f'write ctx.step("{name}", function, argument)'
            )
        key = self._next_key("step", name)
        return _start(lambda wait: self._step(wait, key, partial(function, *args, **kwargs)))

    def sleep(self, length: timedelta | float, name: str) -> Any:
        seconds = check_wait("length", length).total_seconds()
        key = self._next_key("sleep", name)
        return _start(lambda wait: self._sleep(wait, key, seconds))

    def wait_for(self, name: str, timeout: timedelta | float | None) -> Any:
        seconds = None if timeout is None else check_wait("timeout", timeout).total_seconds()
        key = self._next_key("signal", name)
        return _start(lambda wait: self._wait_for(wait, key, seconds))

    def last_checkpoint(self) -> Any:
        return _start(self._last_checkpoint)

    def _next_key(self, kind: Kind, name: str) -> StepKey:
        """Number the call; refuses one whose number may differ in the next attempt."""
        self._refuse_if_left()
        what = "the name of a signal" if kind == "signal" else f"the name of a {kind}"
        name = check_step_name(what, name)
        if kind != "step" and (outer := _at_work_in.get()) is not None:
            raise BadInput(
                f"{outer} cannot sleep or wait for a signal, because it would run again from its "
                "beginning: do that between the steps"
            )
        caller = _caller()
        first, calls = self._calls.get((kind, name), (caller, 0))
        key = StepKey(kind, name, calls + 1)
        if first is not caller:
            raise BadInput(
                f"{key} is asked for by two tasks or threads. Which of them comes first may differ "
                "in the next attempt, and then each would get the other's result. Give it a name "
                f'of its own in each, such as f"{name} {{number}}"'
            )
        self._calls[kind, name] = (first, calls + 1)
        return key

    def _refuse_if_left(self) -> None:
        self._refuse_if_lost()
        if self.left:  # the handler has caught the exception, or this is a `finally`
            raise Suspended(tuple(self._blocked))

    # ── the calls ─────────────────────────────────────────────────────────────────────────

    async def _step(self, wait: Wait, key: StepKey, call: partial[Any]) -> Any:
        with self._working():
            function = _innermost(call.func)
            stored = await self._stored_step(wait, key)
            if stored is not None:
                return _stored_result(stored, function, self._claim)
            began = time.monotonic()
            value = await _call(wait, key, call)
            result, decoded = _encoded(key, value, function)
            self._refuse_if_lost()
            ago = time.monotonic() - began
            await wait(self._submit(SaveStep(key, _name(function), result, ago)))
            return decoded

    async def _sleep(self, wait: Wait, key: StepKey, seconds: float) -> None:
        with self._working():
            stored = await self._stored_step(wait, key)
            if stored is not None:
                ends = self._ends(stored)
            else:
                ends = time.monotonic() + seconds
                if seconds > SHORT:
                    await wait(self._submit(SaveStep(key, lasts=seconds)))
            if (left := ends - time.monotonic()) <= SHORT:
                await _pause(wait, left)
                self._refuse_if_lost()
                return
        await self._leave(wait, key, ends)

    async def _wait_for(self, wait: Wait, key: StepKey, timeout: float | None) -> Any:
        with self._working():
            stored = await self._stored_step(wait, key)
            if stored is None or not stored.ended:
                (stored,) = await wait(self._submit(AwaitSignal(key, timeout)))
        if not stored.ended:
            await self._leave(wait, key, None)
        return self._signal(stored)

    def _signal(self, stored: StoredStep) -> Any:
        if stored.timed_out:
            raise SignalTimeout(
                f"no signal {stored.key.name!r} came to job {self._claim.id} in time"
            )
        return payload.decode(stored.result)

    async def _last_checkpoint(self, wait: Wait) -> Any:
        stored = await self._stored_step(wait, StepKey(CHECKPOINT, CHECKPOINT, 1))
        return None if stored is None else payload.decode(stored.result)

    # ── stored steps ──────────────────────────────────────────────────────────────────────

    async def _stored_step(self, wait: Wait, key: StepKey) -> StoredStep | None:
        """Return a step that an earlier run of the handler has stored."""
        if self._stored is None:
            if self._loading is None or self._loading.done():
                self._loading = self._submit(LoadSteps())
            steps = await wait(self._loading)
            if self._stored is None:
                at = time.monotonic()
                self._stored = {step.key: (step, at) for step in steps}
        found = self._stored.get(key)
        return None if found is None else found[0]

    def _ends(self, stored: StoredStep) -> float:
        """Return the monotonic time at which a stored sleep ends."""
        assert self._stored is not None
        return self._stored[stored.key][1] + (stored.ends_in or 0.0)

    def _submit(self, request: Request) -> Answer:
        return self._backend.submit(self._claim, request)

    # ── leaving the handler ───────────────────────────────────────────────────────────────

    @contextmanager
    def _working(self) -> Generator[None]:
        self._at_work += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._at_work -= 1
            if not self._at_work:
                self._idle.set()

    async def _leave(self, wait: Wait, key: StepKey, ends: float | None) -> None:
        """Leave the handler, when no step is at work any more; returns if the sleep ends before."""
        self._blocked[key] = None
        if wait is not _block:
            try:
                if not await self._others_ended(ends):
                    del self._blocked[key]
                    self._refuse_if_left()
                    return
            except BaseException:  # cancelled by the handler
                self._blocked.pop(key, None)
                raise
        self._refuse_if_lost()
        self.left = True
        raise Suspended(tuple(self._blocked))

    async def _others_ended(self, ends: float | None) -> bool:
        """Wait until no step is at work; False if the sleep has ended before."""
        while True:
            left = None if ends is None else max(0.0, ends - time.monotonic())
            try:
                async with asyncio.timeout(left):
                    await self._idle.wait()
            except TimeoutError:
                return False
            for _ in range(OTHERS):  # what waited for the last step may begin another one
                await asyncio.sleep(0)
            if not self._at_work:
                return True


def _start(make: Callable[[Wait], Coroutine[Any, Any, Any]]) -> Any:
    """Return a coroutine in an async handler; in a plain one, run it to its end."""
    if _in_event_loop():
        return make(_await)
    coroutine = make(_block)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a plain handler's step has waited in an event loop")


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _call(wait: Wait, key: StepKey, call: partial[Any]) -> Any:
    """Call the function of a step; in an async handler it may be async."""
    token = _at_work_in.set(key)
    try:
        value = call()
        if not inspect.isawaitable(value):
            return value
        if wait is _block:
            _close(value)
            raise BadInput(
                f"{key} is an async function in a plain handler: give a plain function, or make "
                "the handler async"
            )
        return await value
    finally:
        _at_work_in.reset(token)


async def _await(answer: Answer) -> list[StoredStep]:
    return await asyncio.shield(asyncio.wrap_future(answer))


async def _block(answer: Answer) -> list[StoredStep]:
    return answer.result()


async def _pause(wait: Wait, seconds: float) -> None:
    if seconds <= 0:
        return
    if wait is _block:
        time.sleep(seconds)  # noqa: ASYNC251 - in the thread of a plain handler
    else:
        await asyncio.sleep(seconds)


def _caller() -> object:
    """Return the task or thread that calls."""
    if _in_event_loop() and (task := asyncio.current_task()) is not None:
        return task
    return threading.current_thread()


# ── results ───────────────────────────────────────────────────────────────────────────────


def _encoded(key: StepKey, value: object, function: Callable[..., Any]) -> tuple[str, Any]:
    """Encode a result, and decode it again: a step returns the same in every attempt.

    The step has run, so a result that cannot be stored fails the job: a retry would run it again.
    """
    try:
        encoded = payload.encode(value, f"the result of {key}", limit=payload.MAX_BYTES)
        returns = _result_type(function)
        return encoded, returns.decode(payload.decode(encoded), str(key), "")
    except (BadInput, ResultDoesNotFit) as error:
        raise Fail(f"{key} has run, and its result cannot be stored: {reason_of(error)}") from error


def _stored_result(stored: StoredStep, function: Callable[..., Any], claim: Claim) -> Any:
    """Return the result of an earlier run; refuses one that this code did not make."""
    key, now = stored.key, _name(function)
    advice = (
        "Deploy code that fits it, or give the step another name: then it runs again, although "
        "it has run"
    )
    if stored.function != now:
        raise StepMismatch(
            f"{key} of job {claim.id} is stored with the result of {stored.function}, and the code "
            f"calls {now} now. {advice}"
        )
    try:
        return _result_type(function).decode(payload.decode(stored.result), str(key), "")
    except ResultDoesNotFit as error:
        raise StepMismatch(
            f"{key} of job {claim.id} is stored, and {reason_of(error)}. {advice}"
        ) from error


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside of partials."""
    while isinstance(function, partial):
        function = function.func
    return function


def _name(function: Callable[..., Any]) -> str:
    """Return the name that is stored with a step, without the module: code may move."""
    name = getattr(function, "__qualname__", None)
    return (reason_of(name) if isinstance(name, str) else name_of(type(function)))[:MAX_NAME]


_result_types: WeakKeyDictionary[Callable[..., Any], ResultType] = WeakKeyDictionary()


def _result_type(function: Callable[..., Any]) -> ResultType:
    try:
        found = _result_types.get(function)
        if found is None:
            found = _result_types[function] = ResultType(function)
    except TypeError:  # not hashable, or without weak references
        return ResultType(function)
    return found


def _close(value: object) -> None:
    if inspect.iscoroutine(value):
        value.close()
