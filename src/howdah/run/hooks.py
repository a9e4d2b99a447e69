"""Hooks: functions of the user that are called when attempts start and end.

Comes after   settle   which reports the stored endings

An end hook is called after the end is stored. Hooks run beside the jobs, never inside one: async
hooks in the worker's event loop, plain ones in their own threads. A hook that raises, calls
sys.exit or takes too long is logged, and does not affect the job. The hooks of one job are called
in order. If hooks are slower than the jobs, a limited number of calls waits; the others are dropped
and logged.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypeVar
from uuid import UUID

import msgspec

from howdah.errors import BadInput
from howdah.job import Claim
from howdah.outcomes import (
    Cancel,
    Complete,
    Ending,
    Fail,
    HandBack,
    Release,
    Retry,
    Snooze,
    Suspend,
)
from howdah.run.outcome_of import traceback_of
from howdah.run.thread_pool import ThreadPool
from howdah.safe_logging import log_named
from howdah.states import State
from howdah.text.reasons import describe, reason_of

_log = log_named("howdah.hooks")

HOOK_TIMEOUT = 10.0  # seconds that a hook may take
CONCURRENCY = 8  # hooks that run at the same time
MAX_WAITING = 10_000  # calls that may wait; others are dropped

When = Literal["start", "end", "retry", "failure"]
End = Literal["completed", "retried", "failed", "cancelled", "snoozed", "released", "lost"]


class AttemptStart(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt that starts."""

    id: UUID
    job_type: str
    attempt: int  # counted from 1
    max_attempts: int
    priority: int
    data: str  # the payload as JSON

    @property
    def payload(self) -> dict[str, Any]:
        """The payload, decoded at each access."""
        return msgspec.json.decode(self.data)


class AttemptEnd(AttemptStart, frozen=True, kw_only=True):
    """An attempt that has ended."""

    outcome: End
    seconds: float  # from the start of the handler to its end
    reason: str | None = None  # the error or reason, in one line
    traceback: str | None = None  # as it is stored
    exception: BaseException | None = None  # what was raised; None if it ran in a child process
    retry_in: timedelta | None = None  # until the next attempt


StartHook = TypeVar("StartHook", bound=Callable[[AttemptStart], object])
EndHook = TypeVar("EndHook", bound=Callable[[AttemptEnd], object])
Hook = Callable[[Any], Any]


class Hooks:
    """The hooks of a queue, in the order in which they were registered."""

    def __init__(self) -> None:
        self._hooks: dict[When, list[Hook]] = {"start": [], "end": [], "retry": [], "failure": []}

    def __bool__(self) -> bool:
        return any(self._hooks.values())

    def on(self, when: When) -> tuple[Hook, ...]:
        return tuple(self._hooks[when])

    def add(self, when: When, hook: Hook) -> None:
        """Register a hook; refuses an object that cannot be called with one argument."""
        if not callable(hook):
            raise BadInput(
                f"@queue.on_{when} got {reason_of(repr(hook))}: "
                "write it above a function, without parentheses"
            )
        name = getattr(hook, "__name__", "hook")
        try:
            inspect.signature(hook).bind(None)
        except TypeError as error:
            raise BadInput(
                f"a hook is called with one argument, the attempt, and {name} takes others "
                f"({error}): write `def {name}(attempt): …`"
            ) from None
        except ValueError:
            pass  # a C function may not show its parameters
        self._hooks[when].append(hook)


class _HookCall(msgspec.Struct):
    hook: Hook
    when: When
    claim: Claim
    value: AttemptStart


class HookCalls:
    """Calls the hooks of one worker."""

    def __init__(self, hooks: Hooks) -> None:
        self._start, self._end = hooks.on("start"), hooks.on("end")
        self._retry, self._failure = hooks.on("retry"), hooks.on("failure")
        self._calls: list[deque[_HookCall]] = [deque() for _ in range(CONCURRENCY)]
        self._busy: dict[int, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()  # of async hooks, also after their timeout
        self._raised: dict[tuple[UUID, int], BaseException] = {}
        self._started_early: dict[tuple[UUID, int], Claim] = {}  # by the attempt before
        self._waiting = 0
        self._dropped = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._threads = ThreadPool(CONCURRENCY)
        self._loop = asyncio.get_running_loop()
        self._empty_context = copy_context()  # without context variables of a job

    # ── attempts ──────────────────────────────────────────────────────────────────────────

    def started(self, claim: Claim) -> None:
        """Call the start hooks of an attempt; those of the end of the one before come first.

        A retry may begin here before the answer comes that the failed attempt is stored.
        """
        if (before := (claim.id, claim.attempt - 1)) in self._raised:
            self._started_early[before] = claim
        elif self._start:
            self._call("start", self._start, claim, AttemptStart(**_about(claim)))

    def raised(self, claim: Claim, error: BaseException) -> None:
        """Keep what a handler raised until its ending is stored."""
        if self._end or self._retry or self._failure:
            self._raised[claim.id, claim.attempt] = error

    def lost(self, claim: Claim, began: float) -> None:
        """Call the end hooks of an attempt that this worker has lost."""
        self._raised.pop((claim.id, claim.attempt), None)
        seconds = max(0.0, time.monotonic() - began)
        end = AttemptEnd(**_about(claim), outcome="lost", seconds=seconds)
        self._call("end", self._end, claim, end)
        self._start_next(claim)

    def settled(self, endings: Sequence[Ending], moved: Mapping[UUID, State | None]) -> None:
        """Call the hooks of stored endings; `moved` has the new state of each job."""
        for ending in endings:
            claim = ending.claim
            if ending.began is None:
                continue  # the handler was never called
            if claim.id not in moved:
                self.lost(claim, ending.began)
                continue
            error = self._raised.pop((claim.id, claim.attempt), None)
            end = _end(ending, moved[claim.id], error)
            self._call("end", self._end, claim, end)
            if end.outcome == "retried":
                self._call("retry", self._retry, claim, end)
            elif end.outcome == "failed":
                self._call("failure", self._failure, claim, end)
            self._start_next(claim)

    def _start_next(self, ended: Claim) -> None:
        """Call the start hooks of the next attempt, if it has begun already."""
        if (claim := self._started_early.pop((ended.id, ended.attempt), None)) is not None:
            self.started(claim)

    # ── calling ───────────────────────────────────────────────────────────────────────────

    def _call(self, when: When, hooks: tuple[Hook, ...], claim: Claim, value: AttemptStart) -> None:
        for hook in hooks:
            if self._waiting >= MAX_WAITING:
                self._drop(1)
                continue
            number = claim.id.int % CONCURRENCY
            self._calls[number].append(_HookCall(hook, when, claim, value))
            self._waiting += 1
            self._idle.clear()
            if number not in self._busy:
                self._busy[number] = self._loop.create_task(
                    self._serve(number), context=self._empty_context.copy()
                )

    def _drop(self, calls: int) -> None:
        before, self._dropped = self._dropped, self._dropped + calls
        if before.bit_length() != self._dropped.bit_length():  # log at 1, 2, 4, 8 …
            _log.error(
                "hook.dropped calls=%d: hooks are slower than the jobs; make them shorter",
                self._dropped,
            )

    async def _serve(self, number: int) -> None:
        calls = self._calls[number]
        try:
            while calls:
                call = calls.popleft()
                try:
                    await self._run_hook(call)
                finally:
                    self._waiting -= 1
        finally:
            del self._busy[number]
            if not self._waiting:
                self._idle.set()

    async def _run_hook(self, call: _HookCall) -> None:
        future: asyncio.Future[BaseException | None]
        try:
            if _is_async(call.hook):
                task = self._loop.create_task(_awaited(call.hook, call.value))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
                future = task
            else:
                future = self._threads.submit(partial(_called, call.hook, call.value)).future
        except Exception as error:  # the system allows no more threads
            self._failed(call, error)
            return
        done, _ = await asyncio.wait({future}, timeout=HOOK_TIMEOUT)
        if not done:
            future.cancel()
            self._failed(call, TimeoutError(f"it took longer than {HOOK_TIMEOUT:g} s"))
        elif future.cancelled():
            self._failed(call, asyncio.CancelledError())
        elif (error := future.result()) is not None:
            self._failed(call, error)

    def _failed(self, call: _HookCall, error: BaseException) -> None:
        _log.ended(
            logging.ERROR,
            call.claim,
            traceback_of(error) if error.__traceback__ is not None else None,
            "hook.failed hook=%s on=%s id=%s type=%s attempt=%d error=%s",
            _name(call.hook),
            call.when,
            call.claim.id,
            call.claim.job_type,
            call.claim.attempt,
            describe(error),
        )

    async def done(self) -> None:
        """Wait until all waiting hooks have been called."""
        await self._idle.wait()

    async def close(self, stop_now: asyncio.Event) -> None:
        """Wait for the waiting hooks, with a timeout, or until `stop_now` is set."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._idle, stop_now)]
        await asyncio.wait(waits, timeout=HOOK_TIMEOUT, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        left = sum(map(len, self._calls))
        for calls in self._calls:
            calls.clear()
        if left:
            self._drop(left)
        for task in (*self._busy.values(), *self._tasks):
            task.cancel()
        self._threads.close()


def _about(claim: Claim) -> dict[str, Any]:
    return {
        "id": claim.id,
        "job_type": claim.job_type,
        "attempt": claim.attempt,
        "max_attempts": claim.max_attempts,
        "priority": claim.priority,
        "data": claim.data,
    }


def _end(ending: Ending, state: State | None, error: BaseException | None) -> AttemptEnd:
    claim, outcome = ending.claim, ending.outcome
    began = ending.began or 0.0
    name = _outcome_name(ending, state)
    failed = name in ("retried", "failed")
    return AttemptEnd(
        **_about(claim),
        outcome=name,
        seconds=max(0.0, (ending.ended or time.monotonic()) - began),
        reason=getattr(outcome, "reason", None) or None,
        traceback=outcome.traceback if isinstance(outcome, Retry | Fail) else None,
        exception=error if failed else None,
        retry_in=outcome.after if isinstance(outcome, Retry) and name == "retried" else None,
    )


def _outcome_name(ending: Ending, state: State | None) -> End:
    match ending.outcome:
        case Complete():
            return "completed"
        case Retry():
            return "failed" if state is State.FAILED else "retried"
        case Fail():
            return "failed"
        case Cancel():
            return "cancelled"
        case Snooze() | Suspend():
            return "snoozed"
        case Release():
            return "released"
        case HandBack():
            return "failed" if state is State.FAILED else "released"


def _name(hook: Hook) -> str:
    return reason_of(getattr(hook, "__qualname__", None) or repr(hook))


def _is_async(hook: Hook) -> bool:
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(
        getattr(hook, "__call__", None)  # noqa: B004 - whether it is async, not whether it exists
    )


async def _awaited(hook: Hook, value: AttemptStart) -> BaseException | None:
    """Call an async hook; returns what it raised, because SystemExit would end the event loop."""
    try:
        await hook(value)
    except BaseException as error:
        return error
    return None


def _called(hook: Hook, value: AttemptStart) -> BaseException | None:
    """Call a plain hook in a thread; returns what it raised."""
    try:
        returned = hook(value)
        if inspect.iscoroutine(returned):
            returned.close()
            raise BadInput("it is a plain function that returned a coroutine: write `async def`")
    except BaseException as error:
        return error
    return None
