"""Attempts: the jobs at work in this worker, each in its way, and how to stop them.

Comes after   claim    which hands over one `Claim` per attempt
Comes before  settle   which gets one `Ending` per attempt

Whatever a handler does, its attempt ends in exactly one `Ending`, or in none when the job
was lost: then there is nothing left to settle and only the log hears of it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import partial
from typing import Any
from uuid import UUID

from howdah.errors import BadInput
from howdah.handler import Handler, Misfit
from howdah.job import Claim
from howdah.logs import log_named
from howdah.outcomes import Ending, Fail, HandBack, Outcome, Release
from howdah.reasons import describe, reason_of
from howdah.run.attempt import (
    outcome_of_error,
    outcome_of_failure,
    outcome_of_timeout,
    outcome_of_trouble,
    outcome_of_value,
)
from howdah.run.context import JobContext, lose
from howdah.run.isolated import Isolated
from howdah.run.reports import Reports
from howdah.run.threads import Call, Threads
from howdah.tracing import Tracing

_log = log_named("howdah.run")


class _Attempt:
    """One job at work."""

    __slots__ = ("began", "claim", "context", "entered", "lost", "released", "started", "task")

    def __init__(self, claim: Claim, context: JobContext) -> None:
        self.claim = claim
        self.context = context
        self.began = time.monotonic()
        self.started = False  # whether the database knows that it runs
        self.lost = False
        self.released = False
        self.entered = False  # whether its task has begun
        self.task: asyncio.Future[Any] | None = None  # done when it has ended; can be cancelled


class Attempts:
    """The jobs at work, at most `slots` of them."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        reports: Reports,
        *,
        slots: int,
        processes: int,
        ended: Callable[[Ending], None],
        freed: Callable[[], None],
        tracing: Tracing | None = None,
    ) -> None:
        self._handlers = handlers
        self._reports = reports
        self._slots = slots
        self._ended = ended
        self._freed = freed
        self._telling = False  # whether `freed` is about to be called
        self._tracing = tracing
        self._running: dict[UUID, _Attempt] = {}
        self._abandoned = 0  # threads that nobody can stop still take their slot
        self._threads = Threads(slots)
        self._isolated = Isolated(processes, reports)
        self._loop = asyncio.get_running_loop()

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, id: UUID) -> bool:
        return id in self._running

    @property
    def free(self) -> int:
        """How many more jobs could start now."""
        return self._slots - len(self._running) - self._abandoned

    def held(self) -> list[tuple[UUID, int]]:
        """Return the leases at work. Called from the heartbeat's thread."""
        return [(a.claim.id, a.claim.attempt) for a in list(self._running.values())]

    def start(self, claim: Claim) -> None:
        """Run one claimed job."""
        if (before := self._running.get(claim.id)) is not None:
            if before.claim.attempt == claim.attempt and not before.lost:
                return  # the server crashed and forgot that we have it already
            self.lose({claim.id})
        attempt = _Attempt(claim, JobContext(claim, self._reports))
        self._running[claim.id] = attempt
        if self._tracing is not None:
            self._start_traced(attempt, self._tracing)
        elif (handler := self._handlers[claim.job_type]).threads_only:
            self._start_in_thread(attempt, handler)
        else:
            attempt.task = self._loop.create_task(self._run(attempt))

    def not_started(self, for_seconds: float) -> list[tuple[Claim, float]]:
        """Return attempts at work for so long that the database should know, once each."""
        before = time.monotonic() - for_seconds
        fresh = [a for a in self._running.values() if not a.started and a.began <= before]
        for attempt in fresh:
            attempt.started = True
        return [(a.claim, a.began) for a in fresh]

    def lose(
        self, ids: set[UUID], why: str = "it was cancelled or given to another worker"
    ) -> None:
        """Stop attempts whose lease is void; nothing of them will be settled."""
        for id in ids:
            if (attempt := self._running.get(id)) is not None and not attempt.lost:
                attempt.lost = True
                lose(attempt.context, why)
                _log.warning(
                    "job.lost id=%s type=%s attempt=%d: %s",
                    id,
                    attempt.claim.job_type,
                    attempt.claim.attempt,
                    why,
                )
                self._cancel(attempt)

    def release_all(self) -> None:
        """Stop everything and hand it back."""
        for attempt in list(self._running.values()):
            attempt.released = True
            lose(attempt.context, "the worker stops")
            self._cancel(attempt)

    def _cancel(self, attempt: _Attempt) -> None:
        assert attempt.task is not None
        attempt.task.cancel()
        if not attempt.entered:  # a task that is cancelled before its first step never begins
            self._end(attempt, self._stopped(attempt, self._handlers[attempt.claim.job_type]))

    async def drained(self, patience: float, hurry: asyncio.Event) -> None:
        """Wait until nothing runs, patience is over, or there is a hurry."""
        until = time.monotonic() + patience
        hurried = asyncio.ensure_future(hurry.wait())
        try:
            while self._running and not hurry.is_set() and (left := until - time.monotonic()) > 0:
                tasks = [a.task for a in self._running.values() if a.task is not None]
                await asyncio.wait(
                    [*tasks, hurried], timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            hurried.cancel()

    async def close(self) -> None:
        self._threads.close()
        await self._isolated.close()

    # ── one attempt ───────────────────────────────────────────────────────────────────────

    async def _run(self, attempt: _Attempt) -> None:
        attempt.entered = True
        claim = attempt.claim
        handler = self._handlers[claim.job_type]
        outcome: Outcome | None
        try:
            arguments = handler.decode(claim.data)
        except BaseException as error:  # a type's own checks may raise anything
            outcome = _outcome_of_bad_payload(error, handler)
        else:
            try:
                if handler.awaits_only:  # what most jobs are, without a step between
                    value = await handler.call(arguments, attempt.context)
                    outcome = outcome_of_value(value, handler, claim)
                else:
                    outcome = await self._outcome(attempt, handler, arguments)
            except asyncio.CancelledError:
                outcome = self._stopped(attempt, handler)
            except BaseException as error:  # whatever a handler raises is an ending, SystemExit too
                outcome = outcome_of_error(error, handler, claim)
        self._end(attempt, outcome)

    def _end(self, attempt: _Attempt, outcome: Outcome | None) -> None:
        claim = attempt.claim
        if self._running.get(claim.id) is attempt:
            del self._running[claim.id]
        if outcome is not None and not attempt.lost:
            ending = Ending(claim, outcome, attempt.began, time.monotonic())
            if self._tracing is not None:
                self._tell_tracing(self._tracing, ending)
            self._ended(ending)
        if not attempt.context.lost:
            lose(attempt.context, "its attempt has ended")
        if not self._telling:
            self._tell_soon()

    def _tell_tracing(self, tracing: Tracing, ending: Ending) -> None:
        try:
            tracing.ended(ending)
        except Exception as error:  # a span is lost, and no ending
            _log.error("job.untraced id=%s error=%s", ending.claim.id, describe(error))

    def _start_traced(self, attempt: _Attempt, tracing: Tracing) -> None:
        """Run an attempt inside its span; if the tracing breaks, the attempt ends as failed."""

        async def run() -> None:
            attempt.entered = True
            try:
                await tracing.running(attempt.claim, partial(self._run, attempt))
            except BaseException as error:
                if self._running.get(attempt.claim.id) is not attempt:
                    _log.error("job.untraced id=%s error=%s", attempt.claim.id, describe(error))
                else:  # it has not ended: it may never have begun
                    outcome = outcome_of_trouble("its tracing broke", error)
                    self._end(attempt, Release() if attempt.released else outcome)

        attempt.task = self._loop.create_task(run())

    def _start_in_thread(self, attempt: _Attempt, handler: Handler) -> None:
        """Run a plain function without a task of its own: it has a thread, and needs no more."""
        try:
            arguments = handler.decode(attempt.claim.data)
        except BaseException as error:  # a type's own checks may raise anything
            self._end(attempt, _outcome_of_bad_payload(error, handler))
            return
        try:
            call = self._submit(attempt, handler, arguments)
        except Exception as error:  # the system gives us no thread
            self._end(attempt, outcome_of_error(error, handler, attempt.claim))
        else:
            attempt.entered = True
            attempt.task = call.future
            call.future.add_done_callback(partial(self._thread_ended, attempt, handler, call))

    def _thread_ended(
        self, attempt: _Attempt, handler: Handler, call: Call, future: asyncio.Future[Any]
    ) -> None:
        outcome: Outcome | None
        try:
            outcome = outcome_of_value(future.result(), handler, attempt.claim)
        except asyncio.CancelledError:
            if not call.ended:
                self._abandon(attempt, call)
            outcome = self._stopped(attempt, handler)
        except BaseException as error:
            outcome = outcome_of_error(error, handler, attempt.claim)
        self._end(attempt, outcome)

    def _submit(self, attempt: _Attempt, handler: Handler, arguments: Any) -> Call:
        context = copy_context()  # so that the thread sees what surrounds the attempt
        return self._threads.submit(lambda: context.run(handler.call, arguments, attempt.context))

    def _tell_soon(self) -> None:
        """Say that slots are free, once for all jobs that end in this turn of the loop."""
        self._telling = True
        self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        self._telling = False
        self._freed()

    async def _outcome(self, attempt: _Attempt, handler: Handler, arguments: Any) -> Outcome:
        claim = attempt.claim
        timeout = handler.rules.timeout
        limit = asyncio.timeout(timeout.total_seconds()) if timeout is not None else None
        try:
            if handler.run == "process":
                return await self._isolated.run(handler, claim, timeout)
            if limit is None:
                value = await self._call(attempt, handler, arguments)
            else:
                async with limit:
                    value = await self._call(attempt, handler, arguments)
            return outcome_of_value(value, handler, claim)
        except TimeoutError:
            if limit is None or not limit.expired():
                raise
            lose(attempt.context, "it timed out")
            abandoned = "; its thread goes on by itself" if handler.run == "thread" else ""
            return outcome_of_timeout(handler, claim, abandoned)

    async def _call(self, attempt: _Attempt, handler: Handler, arguments: Any) -> Any:
        if handler.run == "async":
            return await handler.call(arguments, attempt.context)
        call = self._submit(attempt, handler, arguments)
        try:
            return await call.future
        except asyncio.CancelledError:
            if not call.ended:
                self._abandon(attempt, call)
            raise

    def _abandon(self, attempt: _Attempt, call: Call) -> None:
        """Leave a thread to itself; its slot comes back when it ends."""
        self._abandoned += 1
        claim = attempt.claim
        _log.warning("job.abandoned id=%s type=%s: its thread goes on", claim.id, claim.job_type)

        def ended() -> None:
            self._abandoned -= 1
            self._freed()

        call.then = ended

    def _stopped(self, attempt: _Attempt, handler: Handler) -> Outcome | None:
        """Tell why an attempt was cancelled: by us, or by something inside the handler."""
        if attempt.lost:
            return None
        if attempt.released:
            return Release()
        return outcome_of_failure(
            "CancelledError: something inside the handler was cancelled",
            None,
            retry=True,
            handler=handler,
            claim=attempt.claim,
        )


def _outcome_of_bad_payload(error: BaseException, handler: Handler) -> Outcome:
    if isinstance(error, Misfit):
        return HandBack(reason_of(error), None if error.by_name else handler.signature)
    if isinstance(error, BadInput):
        return Fail(reason_of(error))
    return outcome_of_trouble("the payload could not be read", error)
