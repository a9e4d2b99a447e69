"""Completions: complete jobs in the transactions of their handlers.

Comes after   context.py      which a handler calls
Comes before  executor.py     which asks what became of a completion before it ends the attempt
In SQL        sql/60_settle/complete_in_transaction.sql

A completion in a transaction is fenced by the lease, as any other. The worker does not know whether
a caller's transaction was committed, nor whether a commit happened whose answer was lost. So it
asks the database when the handler has ended, and writes an ending only if the job is still held.
While the transaction is open its row is locked, and a statement of ours would wait for it. So the
reports of the job are sent before, and its attempt does not end before its transaction.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from howdah import payload
from howdah.checks.durations import YEAR, check_length
from howdah.errors import BadInput, HowdahError, StaleLease
from howdah.handler import Handler
from howdah.in_hand import InHand, LeaseKey
from howdah.job import Claim
from howdah.outcomes import Committed, Complete, Fail, Outcome, Release
from howdah.run.attempt import Attempt
from howdah.run.context import DONE, JobContext, close_reports, refuse_if_lost
from howdah.run.outcome_of import outcome_of_failure
from howdah.run.own_transaction import OwnTransaction, close_at_once
from howdah.safe_logging import log_named
from howdah.store import Store, completion
from howdah.store.caller_connection import Driver, driver_of, refuse_async, run_inline
from howdah.store.completion import HeldJob
from howdah.text.reasons import describe

if TYPE_CHECKING:
    from howdah.store.completion import Pool

_log = log_named("howdah.run")

FIRST_PAUSE, LONGEST_PAUSE = 0.01, 0.5  # seconds between two looks at an open transaction
LONG = 1.0  # seconds after which the log mentions it
CLOSE_TIMEOUT = 2.0  # seconds for an orderly end of the connections
_NOT_COMMITTED = (
    "NotCommitted: complete_in was called, but its transaction was not committed: the job is not "
    "complete, and what the transaction wrote is gone. Commit it before the handler returns, and "
    "await complete_in in an async handler"
)


class Completion:
    """What one attempt has done to complete its job in a transaction."""

    __slots__ = (
        "asked",
        "committed",
        "connection",
        "context",
        "ending",
        "job",
        "open",
        "result",
        "sending",
    )

    def __init__(self, context: JobContext, job: HeldJob) -> None:
        self.context: JobContext = context
        self.job: HeldJob = job
        self.asked: bool = False  # whether the job may have been completed
        self.sending: bool = False  # whether a statement is under way
        self.committed: bool = False  # whether we know that it was
        self.result: str | None = None
        self.open: bool = False  # whether the handler is in a block of ctx.transaction()
        self.connection: Any = None  # the one of that block
        self.ending: bool = False  # whether the executor waits to know what became of it


class Completions:
    """The completions in transactions of one worker."""

    def __init__(self, store: Store, worker_id: str, in_hand: InHand[Attempt]) -> None:
        self._store = store
        self._worker_id = worker_id
        self._in_hand = in_hand
        self._size = min(in_hand.slots, store.connections)
        self._pool: Pool | None = None
        self._opening = asyncio.Lock()
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.known: dict[LeaseKey, Completion] = {}  # of attempts that have not ended
        self.flush: Callable[[], Awaitable[dict[LeaseKey, str]]] = _no_reports

    # ── for handlers ──────────────────────────────────────────────────────────────────────

    def transaction(
        self, context: JobContext, claim: Claim, idle_timeout: timedelta | float
    ) -> OwnTransaction:
        idle = check_length("idle_timeout", idle_timeout, YEAR).total_seconds()
        return OwnTransaction(self, context, claim, idle)

    def complete_in(
        self, context: JobContext, claim: Claim, conn: Any, result: object
    ) -> Awaitable[None]:
        """Complete the job in the transaction of this connection."""
        driver = driver_of(conn)
        _refuse_closed(conn)
        encoded = None
        if result is not None:
            what = f"the result of {claim.job_type}"
            encoded = payload.encode(result, what, limit=payload.MAX_BYTES)
        known = self.of(context, claim)
        loop = _loop_of_this_thread()
        if loop is None:
            refuse_async(conn)
        known.asked = True
        if loop is not None:
            return self._complete_in(loop, known, conn, driver, encoded)
        asyncio.run_coroutine_threadsafe(self.prepare(known), self.loop).result()
        run_inline(self._send(known, conn, driver, encoded))
        return DONE

    async def _complete_in(
        self,
        loop: asyncio.AbstractEventLoop,
        known: Completion,
        conn: Any,
        driver: Driver,
        result: str | None,
    ) -> None:
        if loop is self.loop:
            await self.prepare(known)
        else:  # a handler in a thread that runs a loop of its own
            prepared = asyncio.run_coroutine_threadsafe(self.prepare(known), self.loop)
            await asyncio.wrap_future(prepared)
        await self._send(known, conn, driver, result)

    def of(self, context: JobContext, claim: Claim) -> Completion:
        """Return what is known of an attempt; refuses one whose job is complete."""
        key = (claim.id, claim.attempt)
        if (known := self.known.get(key)) is None:
            attempt = self._in_hand.running.get(claim.id)
            began = time.monotonic() if attempt is None else attempt.began
            job = HeldJob(self._worker_id, claim, began, secrets.token_hex(8))
            known = self.known[key] = Completion(context, job)
            try:
                refuse_if_lost(context)
            except StaleLease:  # its attempt has ended meanwhile: nobody else would forget it
                self.known.pop(key, None)
                raise
        if known.committed:
            raise BadInput(
                f"job {claim.id} was completed already, in a block of ctx.transaction(): a job is "
                "completed once, so make it one block"
            )
        return known

    async def prepare(self, known: Completion) -> None:
        """Write what must be in the database before the row of the job is locked."""
        refuse_if_lost(known.context)
        claim = known.job.claim
        attempt = self._in_hand.running.get(claim.id)
        if attempt is not None:
            attempt.started = True  # the completion says when it began
        close_reports(known.context)
        refused = await self.flush()
        if (why := refused.pop((claim.id, claim.attempt), None)) is not None:
            raise Fail(why)  # an attempt whose events are lost must not count as completed
        if claim.in_run:
            await self._wait_for_run()

    async def _wait_for_run(self) -> None:
        """Wait until the endings of the jobs before this one in its run are written."""
        before = set(self._in_hand.unwritten_leases())
        while True:
            if before.isdisjoint(self._in_hand.unwritten_leases()):
                return
            await asyncio.sleep(FIRST_PAUSE / 2)

    async def _send(self, known: Completion, conn: Any, driver: Driver, result: str | None) -> None:
        known.sending = True
        try:
            refuse_if_lost(known.context)
            await completion.mark(conn, driver, known.job)
            await completion.complete(conn, driver, known.job, result)
            known.result = result
        finally:
            known.sending = False

    async def pool(self) -> Pool:
        """Return the pool of connections for ctx.transaction()."""
        async with self._opening:
            if self._pool is None:
                self._pool = await completion.open_pool(self._store, self._size)
            return self._pool

    # ── for the executor ──────────────────────────────────────────────────────────────────

    def decides(self, claim: Claim) -> bool:
        """Whether a row that is gone may be one that the handler itself has completed."""
        known = self.known.get((claim.id, claim.attempt))
        return known is not None and (known.asked or known.committed)

    async def outcome(
        self, known: Completion, outcome: Outcome, handler: Handler
    ) -> Outcome | None:
        """Return how an attempt has ended; None: it had lost its job."""
        claim = known.job.claim
        if not known.asked and not known.committed:
            return outcome  # its block was rolled back
        state = "completed" if known.committed else await self._state(known)
        if state == "lost":
            _log.warning(
                "job.lost id=%s type=%s attempt=%d: %s",
                claim.id,
                claim.job_type,
                claim.attempt,
                "it was cancelled or given to another worker",
            )
            return None
        if state == "held":
            if not isinstance(outcome, Complete):
                return outcome
            return outcome_of_failure(
                _NOT_COMMITTED, None, retry=True, handler=handler, claim=claim
            )
        _warn_if_too_late(claim, outcome, known.result)
        return Committed(known.result)

    async def _state(self, known: Completion) -> completion.State:
        """Wait until the transaction has ended; returns what became of the completion."""
        began, pause, told = time.monotonic(), FIRST_PAUSE, False
        while True:
            try:
                state = await completion.state(self._store, known.job)
            except HowdahError as error:
                _log.warning("job.completion_unknown id=%s error=%s", known.job.claim.id, error)
                await self._store.reachable.wait(LONGEST_PAUSE)
                continue
            if state != "open" and not known.sending:
                return state
            if not told and time.monotonic() > began + LONG:
                told = True
                _log.warning(
                    "job.open_transaction id=%s type=%s: its handler has ended, and the "
                    "transaction of its complete_in is still open",
                    known.job.claim.id,
                    known.job.claim.job_type,
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def ended(self, claim: Claim) -> None:
        """Forget an attempt; a transaction that its code still has open is rolled back."""
        known = self.known.pop((claim.id, claim.attempt), None)
        if known is not None and known.connection is not None:
            close_at_once(known.connection)

    async def close(self) -> None:
        if self._pool is None:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()


async def _no_reports() -> dict[LeaseKey, str]:
    return {}


def _loop_of_this_thread() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _refuse_closed(conn: Any) -> None:
    """Refuse a connection that is closed; drivers say so in many ways."""
    is_closed = getattr(conn, "is_closed", None)  # asyncpg
    if is_closed() if callable(is_closed) else getattr(conn, "closed", False):
        raise BadInput(
            "complete_in: conn is closed: call it in the transaction that has your writes, before "
            "its commit"
        )


def _warn_if_too_late(claim: Claim, outcome: Outcome, result: str | None) -> None:
    """Log what a handler decided after its job was completed, and what cannot be stored."""
    if isinstance(outcome, Release):
        return
    if not isinstance(outcome, Complete):
        _log.warning(
            "job.ended_before id=%s type=%s: its handler ended with %s after the job was "
            "completed in a transaction; that changes nothing",
            claim.id,
            claim.job_type,
            describe(outcome) if isinstance(outcome, BaseException) else type(outcome).__name__,
        )
    elif outcome.result is not None and outcome.result != result:
        _log.warning(
            "job.result_dropped id=%s type=%s: the job was completed in a transaction, so what "
            "its handler returned afterwards is not stored: give it to complete_in",
            claim.id,
            claim.job_type,
        )
