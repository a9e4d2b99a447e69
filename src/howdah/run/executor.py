"""Executor: run the claimed jobs of this worker, and stop them.

Comes after   claim    which gives one `Claim` per attempt
Comes before  settle   which gets one `Ending` per attempt

Every attempt ends in exactly one `Ending`, whatever its handler does. The exception is a lost job:
it has nothing left to settle, and only the log mentions it.

A cancelled handler gets some seconds to clean up. If it still runs after that, it is abandoned: its
attempt ends without it, and its slot is free again when its code ends.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping
from contextvars import copy_context
from functools import partial
from typing import Any

from howdah.errors import BadInput
from howdah.handler import Handler, PayloadMismatch
from howdah.in_hand import InHand, LeaseKey
from howdah.job import Claim
from howdah.outcomes import Cancel, Complete, Ending, Fail, HandBack, Outcome, Release
from howdah.run.attempt import Attempt
from howdah.run.completions import Completion, Completions
from howdah.run.context import JobContext, current, lose, outcome_unless_left
from howdah.run.detach_task import detach
from howdah.run.hooks import HookCalls
from howdah.run.outcome_of import (
    outcome_of_error,
    outcome_of_failure,
    outcome_of_internal_error,
    outcome_of_timeout,
    outcome_of_value,
)
from howdah.run.process.runner import ProcessRunner
from howdah.run.reports import Reports
from howdah.run.shared_task import SharedTask
from howdah.run.thread_pool import ThreadCall, ThreadPool
from howdah.safe_logging import log_named
from howdah.text.reasons import describe, reason_of
from howdah.tracing import Tracing

_log = log_named("howdah.run")

SLOW = 0.1  # seconds: an attempt that took longer is remembered after its end
JUST_NOW = 1.0  # seconds for which it is remembered
CLEANUP = 5.0  # seconds that a cancelled handler gets to end
_FOR_GOOD = (Complete, Fail, Cancel)
STEP = 0.003  # seconds in which jobs of runs may start each other in one step of the event loop


class Executor:
    """Runs at most `slots` jobs at the same time."""

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        in_hand: InHand[Attempt],
        reports: Reports,
        completions: Completions,
        *,
        processes: int,
        tracing: Tracing | None = None,
        hooks: HookCalls | None = None,
    ) -> None:
        self._handlers = handlers
        self._in_hand = in_hand
        self._running = in_hand.running
        self._reports = reports
        self._completions = completions
        self._completing = completions.known  # empty where no handler completes in a transaction
        self._tracing = tracing
        self._hooks = hooks
        self._room_noted = False  # whether `in_hand.on_room` is about to be called
        self._going_on: set[asyncio.Future[Any]] = set()  # abandoned tasks
        self._slow: deque[tuple[str, float, float]] = deque(maxlen=20)  # type, began, ended
        self._shared_task = SharedTask(self._run)
        self._threads = ThreadPool(in_hand.thread_limit)
        self._processes = ProcessRunner(processes, reports)
        self._loop = asyncio.get_running_loop()
        self._empty_context = copy_context()  # belongs to no attempt: see _note_room
        self._following: list[Attempt] = []  # of runs, about to begin in the next step
        self._step_until = 0.0  # until when jobs of runs begin in this step
        self._beginning = False  # whether one of them begins now

    def types(self, for_seconds: float = 0) -> list[str]:
        """Name the types that have run for so long, or have just ended. Safe in any thread."""
        now = time.monotonic()
        names = {
            a.claim.job_type for a in list(self._running.values()) if now - a.began >= for_seconds
        }
        if for_seconds:
            names.update(
                job_type
                for job_type, began, ended in list(self._slow)
                if ended - began >= for_seconds and now - ended < JUST_NOW
            )
        return sorted(names)

    def start(self, claim: Claim) -> None:
        """Run one claimed job."""
        if (earlier := self._running.get(claim.id)) is not None:
            if earlier.claim.attempt == claim.attempt and not earlier.lost:
                return  # the server crashed and lost the record of our claim
            self.lose({(claim.id, earlier.claim.attempt)})
            self._abandon_task(earlier)
        self._begin(self._add(claim))

    def _add(self, claim: Claim) -> Attempt:
        """Give a claimed job its slot."""
        handler = self._handlers[claim.job_type]
        attempt = Attempt(claim, handler, JobContext(claim, self._reports))
        self._running[claim.id] = attempt
        if handler.run == "thread":
            attempt.in_thread = True
            self._in_hand.in_threads += 1
        return attempt

    def _begin(self, attempt: Attempt) -> None:
        if self._hooks is not None:
            self._hooks.started(attempt.claim)
        if self._tracing is not None:
            self._start_traced(attempt, self._tracing)
        elif attempt.handler.thread_without_timeout:
            self._start_in_thread(attempt)
        else:
            self._shared_task.start(attempt)

    def not_started(self, for_seconds: float) -> list[tuple[Claim, float]]:
        """Return attempts that have run for so long that the database should know, once each."""
        latest = time.monotonic() - for_seconds
        unmarked = [a for a in self._running.values() if not a.started and a.began <= latest]
        for attempt in unmarked:
            attempt.started = True
        return [(a.claim, a.began) for a in unmarked]

    def lose(
        self, leases: set[LeaseKey], why: str = "it was cancelled or given to another worker"
    ) -> None:
        """Stop attempts whose lease is no longer valid; they will not be settled.

        The same job may be here again, in a later attempt that is not lost.
        """
        for id, number in leases:
            attempt = self._running.get(id)
            if attempt is not None and attempt.claim.attempt == number and not attempt.lost:
                if self._completing and self._completions.decides(attempt.claim):
                    continue  # its own transaction may have completed it
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
        """Stop every attempt and release its job."""
        for attempt in list(self._running.values()):
            attempt.released = True
            lose(attempt.context, "the worker stops")
            self._cancel(attempt)

    def abandon_all(self) -> None:
        """Release the jobs of attempts that still run although they were stopped."""
        for attempt in list(self._running.values()):
            self._abandon_task(attempt)

    def _cancel(self, attempt: Attempt) -> None:
        if attempt.task is not None:
            attempt.task.cancel()
        if not attempt.entered:  # and never will: a task cancelled before its first step never runs
            self._end(attempt, self._stopped(attempt))
        else:
            self._loop.call_later(CLEANUP, self._abandon_task, attempt)

    async def drained(self, seconds: float, stop_now: asyncio.Event) -> None:
        """Wait until nothing runs, so many seconds have passed, or `stop_now` is set."""
        until = time.monotonic() + seconds
        stopped = asyncio.ensure_future(stop_now.wait())
        try:
            while (
                self._running and not stop_now.is_set() and (left := until - time.monotonic()) > 0
            ):
                tasks = [a.task for a in self._running.values() if a.task is not None]
                if len(tasks) < len(self._running):  # the others begin at once
                    await asyncio.sleep(0)
                    continue
                await asyncio.wait(
                    [*tasks, stopped], timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            stopped.cancel()

    async def close(self) -> None:
        self._threads.close()
        for task in self._going_on:
            detach(task)
        await self._processes.close()

    # ── one attempt ───────────────────────────────────────────────────────────────────────

    async def _run(self, attempt: Attempt) -> None:
        attempt.entered = True
        current.set(attempt.context)
        claim = attempt.claim
        handler = attempt.handler
        outcome: Outcome | None
        try:
            arguments = handler.decode(claim.data)
        except BaseException as error:  # a type's own checks may raise anything
            outcome = _outcome_of_bad_payload(error, handler)
        else:
            try:
                if handler.async_without_timeout:  # the usual case: saves one coroutine
                    value = await handler.call(arguments, attempt.context)
                    outcome = outcome_of_value(value, handler, claim)
                else:
                    outcome = await self._outcome(attempt, arguments)
            except asyncio.CancelledError:
                outcome = self._stopped(attempt)
            except BaseException as error:  # also SystemExit: it ends the attempt
                if self._hooks is not None:
                    self._hooks.raised(claim, error)
                outcome = outcome_of_error(error, handler, claim)
        if attempt.timed_out:  # even if the handler suppressed the cancellation
            outcome = self._stopped(attempt)
        if self._completing and (known := self._completion_of(attempt)) is not None:
            outcome = await self._known_outcome(attempt, known, outcome)
        self._end(attempt, outcome)

    def _completion_of(self, attempt: Attempt) -> Completion | None:
        return self._completing.get((attempt.claim.id, attempt.claim.attempt))

    async def _known_outcome(
        self, attempt: Attempt, known: Completion, outcome: Outcome | None
    ) -> Outcome | None:
        """Return the outcome of an attempt that has asked to complete its job in a transaction."""
        if outcome is None or attempt.ended:
            return outcome
        try:
            return await self._completions.outcome(known, outcome, attempt.handler)
        except asyncio.CancelledError:
            return self._stopped(attempt)
        except Exception as error:  # whatever it is, the attempt must end
            return outcome_of_internal_error("its completion could not be looked up", error)

    def _end_when_known(self, attempt: Attempt, outcome: Outcome | None) -> None:
        """End an attempt whose code has ended, or goes on by itself."""
        known = self._completion_of(attempt) if self._completing else None
        if known is None or outcome is None:
            self._end(attempt, outcome)
            return

        async def end() -> None:
            self._end(attempt, await self._known_outcome(attempt, known, outcome))

        known.ending = True
        attempt.task = self._loop.create_task(end(), context=self._empty_context.copy())

    def _end(self, attempt: Attempt, outcome: Outcome | None) -> None:
        if attempt.ended:
            return  # the attempt was abandoned before
        attempt.ended = True
        outcome = outcome_unless_left(attempt.context, outcome)
        claim = attempt.claim
        if self._running.get(claim.id) is attempt:
            del self._running[claim.id]
        in_hand = self._in_hand
        if attempt.in_thread:
            attempt.in_thread = False
            in_hand.in_threads -= 1
            in_hand.ended_in_threads += 1
        in_hand.ended += 1
        if outcome is not None and not attempt.lost:
            now = time.monotonic()
            ending = Ending(claim, outcome, attempt.began, now)
            if now - attempt.began > SLOW:
                self._slow.append((claim.job_type, attempt.began, now))
            if self._tracing is not None:
                self._tell_tracing(self._tracing, ending)
            in_hand.add_ending(ending)
        elif self._hooks is not None:
            self._hooks.lost(claim, attempt.began)
        lose(attempt.context, "its attempt has ended")
        if self._completing:
            self._completions.ended(claim)
        if attempt.handler.ordered:
            self._go_on(attempt, outcome)
        if not self._room_noted:
            self._note_room()

    # ── runs ──────────────────────────────────────────────────────────────────────────────

    def _go_on(self, attempt: Attempt, outcome: Outcome | None) -> None:
        """Start the job that follows in its run, in the same slot; or release the run.

        It goes on if the job has ended for good. If not, that job must run again before the next.
        """
        in_hand, claim = self._in_hand, attempt.claim
        now = time.monotonic()
        ended = not attempt.lost and isinstance(outcome, _FOR_GOOD)
        if ended:
            in_hand.runs.ended(claim.job_type, now - attempt.began)
        if not in_hand.runs:
            return
        free = in_hand.free_in_threads if attempt.handler.run == "thread" else in_hand.free
        if ended and in_hand.claiming and free > 0:  # an abandoned handler may have the slot
            following = in_hand.runs.next_after(claim, now)
            if following is not None:
                if following.id not in self._running:  # a newer attempt: this one was recovered
                    self._follow(self._add(following), now)
                    return
                in_hand.add_ending(Ending(following, Release()))
                claim, ended = following, False
        for released in in_hand.runs.take(claim, ended=ended):
            in_hand.add_ending(Ending(released, Release()))

    def _follow(self, attempt: Attempt, now: float) -> None:
        """Begin a job of a run: at once, but sometimes let all else go on before."""
        if self._following or self._beginning or now >= self._step_until:
            if not self._following:
                self._loop.call_soon(self._begin_following, context=self._empty_context)
            self._following.append(attempt)
            return
        self._beginning = True
        try:  # it must not inherit the context variables of the job before it
            self._empty_context.copy().run(self._begin, attempt)
        finally:
            self._beginning = False

    def _begin_following(self) -> None:
        self._step_until = time.monotonic() + STEP
        following, self._following = self._following, []
        for attempt in following:
            if not attempt.ended:  # stopped before it began
                self._begin(attempt)

    def _tell_tracing(self, tracing: Tracing, ending: Ending) -> None:
        try:
            tracing.ended(ending)
        except Exception as error:  # the span is lost, the ending is not
            _log.error("job.untraced id=%s error=%s", ending.claim.id, describe(error))

    def _start_traced(self, attempt: Attempt, tracing: Tracing) -> None:
        """Run an attempt inside its span; if the tracing breaks, the attempt ends as failed."""

        async def run() -> None:
            attempt.entered = True
            try:
                await tracing.running(attempt.claim, partial(self._run, attempt))
            except BaseException as error:
                if self._running.get(attempt.claim.id) is not attempt:
                    _log.error("job.untraced id=%s error=%s", attempt.claim.id, describe(error))
                else:  # the attempt has not ended; perhaps it never began
                    outcome = outcome_of_internal_error("its tracing broke", error)
                    self._end(attempt, Release() if attempt.released else outcome)

        attempt.task = self._loop.create_task(run())

    def _start_in_thread(self, attempt: Attempt) -> None:
        """Run a plain function in a thread, without a task of its own."""
        handler = attempt.handler
        try:
            arguments = handler.decode(attempt.claim.data)
        except BaseException as error:  # a type's own checks may raise anything
            self._end(attempt, _outcome_of_bad_payload(error, handler))
            return
        try:
            call = self._submit(attempt, arguments)
        except Exception as error:  # the operating system refuses to start a thread
            self._end(attempt, outcome_of_error(error, handler, attempt.claim))
        else:
            attempt.entered = True
            attempt.task = call.future
            call.future.add_done_callback(partial(self._thread_ended, attempt, call))

    def _thread_ended(
        self, attempt: Attempt, call: ThreadCall, future: asyncio.Future[Any]
    ) -> None:
        handler = attempt.handler
        outcome: Outcome | None
        try:
            outcome = outcome_of_value(future.result(), handler, attempt.claim)
        except asyncio.CancelledError:
            if not call.ended:
                self._abandon_thread(attempt, call)
            outcome = self._stopped(attempt)
        except BaseException as error:
            if self._hooks is not None:
                self._hooks.raised(attempt.claim, error)
            outcome = outcome_of_error(error, handler, attempt.claim)
        self._end_when_known(attempt, outcome)

    def _submit(self, attempt: Attempt, arguments: Any) -> ThreadCall:
        function = attempt.handler.call
        context = copy_context()  # so that the thread sees the context variables of the attempt
        context.run(current.set, attempt.context)
        return self._threads.submit(lambda: context.run(function, arguments, attempt.context))

    def _note_room(self) -> None:
        """Call `on_room` once for all jobs that end in this iteration of the event loop."""
        self._room_noted = True
        # a job that starts now must not inherit the context variables of the ended one
        self._loop.call_soon(self._tell_room, context=self._empty_context)

    def _tell_room(self) -> None:
        self._room_noted = False
        self._in_hand.on_room()

    async def _outcome(self, attempt: Attempt, arguments: Any) -> Outcome:
        handler = attempt.handler
        timeout = handler.rules.timeout
        if handler.run == "process":
            return await self._processes.run(handler, attempt.claim, timeout)
        if timeout is None:
            return outcome_of_value(await self._call(attempt, arguments), handler, attempt.claim)
        timer = self._loop.call_later(timeout.total_seconds(), self._time_out, attempt)
        try:
            value = await self._call(attempt, arguments)
        finally:
            timer.cancel()
        return outcome_of_value(value, handler, attempt.claim)

    def _time_out(self, attempt: Attempt) -> None:
        """Stop an attempt that reached its timeout; from now on its outcome is the timeout."""
        if not attempt.lost:
            attempt.timed_out = True
            lose(attempt.context, "it timed out")
            self._cancel(attempt)

    async def _call(self, attempt: Attempt, arguments: Any) -> Any:
        if attempt.handler.run == "async":
            return await attempt.handler.call(arguments, attempt.context)
        call = self._submit(attempt, arguments)
        try:
            return await call.future
        except asyncio.CancelledError:
            if not call.ended:
                self._abandon_thread(attempt, call)
            raise

    def _abandon_thread(self, attempt: Attempt, call: ThreadCall) -> None:
        """Abandon a thread that cannot be stopped; its slot is free again when it ends."""
        self._in_hand.abandoned += 1
        self._in_hand.in_threads += 1
        claim = attempt.claim
        _log.warning("job.abandoned id=%s type=%s: its thread goes on", claim.id, claim.job_type)

        def ended() -> None:
            self._in_hand.abandoned -= 1
            self._in_hand.in_threads -= 1
            if not self._room_noted:
                self._note_room()

        call.on_end = ended

    def _abandon_task(self, attempt: Attempt) -> None:
        """End an attempt whose handler still runs; its slot is free again when that ends."""
        task = attempt.task
        if attempt.ended or task is None:
            return
        if self._completing and (known := self._completion_of(attempt)) and known.ending:
            return  # its code has ended, or was abandoned before
        claim = attempt.claim
        _log.warning(
            "job.abandoned id=%s type=%s: its handler goes on although it was cancelled",
            claim.id,
            claim.job_type,
        )
        self._in_hand.abandoned += 1
        self._going_on.add(task)
        task.add_done_callback(self._abandoned_task_ended)
        self._end_when_known(attempt, self._stopped(attempt, abandoned=True))

    def _abandoned_task_ended(self, task: asyncio.Future[Any]) -> None:
        self._in_hand.abandoned -= 1
        self._going_on.discard(task)
        if not self._room_noted:
            self._note_room()

    def _stopped(self, attempt: Attempt, *, abandoned: bool = False) -> Outcome | None:
        """Return the outcome of a cancelled attempt: cancelled by us, or inside its handler."""
        handler = attempt.handler
        if attempt.lost:
            return None
        if attempt.timed_out:
            goes_on = "thread" if handler.run == "thread" else "handler" if abandoned else ""
            aftermath = f"; its {goes_on} goes on by itself" if goes_on else ""
            return outcome_of_timeout(handler, attempt.claim, aftermath)
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
    if isinstance(error, PayloadMismatch):
        return HandBack(reason_of(error), None if error.by_name else handler.signature)
    if isinstance(error, BadInput):
        return Fail(reason_of(error))
    return outcome_of_internal_error("the payload could not be read", error)
