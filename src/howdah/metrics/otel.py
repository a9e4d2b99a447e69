"""OpenTelemetry: spans for enqueue and run, one trace across processes. The extra `otel`.

The trace context is stored as a W3C traceparent in the job's column `trace`, not in its payload.
The span of a run is a child of the span of its enqueue, in any process and at any later time. Only
sampled contexts are stored, so sampling in the producer also decides for the workers.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from howdah.client.queue import Queue
from howdah.client.sync import SyncQueue
from howdah.job import Claim, Draft
from howdah.outcomes import Ending, Fail, Retry
from howdah.settle import verb_for
from howdah.tracing import Drafts
from howdah.version import VERSION

AnyQueue = TypeVar("AnyQueue", Queue, SyncQueue)

_W3C = TraceContextTextMapPropagator()
_SYSTEM = {"messaging.system": "howdah"}


def trace(queue: AnyQueue, provider: api.TracerProvider | None = None) -> AnyQueue:
    """Make spans for a queue, its job types and its workers; returns the queue."""
    tracing = _Spans(api.get_tracer("howdah", VERSION, provider))
    if isinstance(queue, SyncQueue):
        queue.asynchronous.store.tracing = tracing
        queue._bridge.store.tracing = tracing  # pyright: ignore[reportPrivateUsage]
    else:
        queue.store.tracing = tracing
    return queue


class _Spans:
    """Makes spans; tracing.py says when each method is called."""

    def __init__(self, tracer: api.Tracer) -> None:
        self._tracer = tracer
        self._running: dict[tuple[UUID, int], Span] = {}

    @contextmanager
    def enqueueing(self, draft: Draft) -> Generator[Draft]:
        """Make the span of one enqueue."""
        attributes = {
            **_SYSTEM,
            "messaging.operation.name": "enqueue",
            "messaging.destination.name": draft.job_type,
            "messaging.message.id": str(draft.id),
        }
        with self._tracer.start_as_current_span(
            f"enqueue {draft.job_type}", kind=SpanKind.PRODUCER, attributes=attributes
        ):
            yield _with_trace(draft, _traceparent())

    @contextmanager
    def enqueueing_many(self, drafts: Drafts) -> Generator[Drafts]:
        """Make one span for a stream; all its jobs get the same context."""
        with self._tracer.start_as_current_span(
            "enqueue_many",
            kind=SpanKind.PRODUCER,
            attributes={**_SYSTEM, "messaging.operation.name": "enqueue"},
        ) as span:
            stream = _TracedStream(_traceparent())
            try:
                yield (
                    stream.each_async(drafts)
                    if isinstance(drafts, AsyncIterable)
                    else stream.each(drafts)
                )
            finally:
                span.set_attribute("messaging.batch.message_count", stream.jobs)

    async def running(self, claim: Claim, attempt: Callable[[], Awaitable[None]]) -> None:
        """Make the span of one attempt, a child of the span of its enqueue."""
        attributes = {
            **_SYSTEM,
            "messaging.operation.name": "run",
            "messaging.destination.name": claim.job_type,
            "messaging.message.id": str(claim.id),
            "howdah.attempt": claim.attempt,
            "howdah.priority": claim.priority,
        }
        key = (claim.id, claim.attempt)
        with self._tracer.start_as_current_span(
            f"run {claim.job_type}",
            context=_context(claim.trace),
            kind=SpanKind.CONSUMER,
            attributes=attributes,
        ) as span:
            self._running[key] = span
            try:
                await attempt()
            finally:
                if self._running.pop(key, None) is not None:
                    span.set_attribute("howdah.outcome", "lost")

    def ended(self, ending: Ending) -> None:
        """Write on an attempt's span how it ended."""
        span = self._running.pop((ending.claim.id, ending.claim.attempt), None)
        if span is None:
            return
        outcome = ending.outcome
        span.set_attribute("howdah.outcome", str(verb_for(outcome)))
        if isinstance(outcome, Fail | Retry):
            span.set_status(Status(StatusCode.ERROR, outcome.reason))


class _TracedStream:
    """Gives each draft of a stream the trace context, and counts the drafts."""

    def __init__(self, traceparent: str | None) -> None:
        self._traceparent = traceparent
        self.jobs = 0

    def each(self, drafts: Any) -> Generator[Draft]:
        for draft in drafts:
            self.jobs += 1
            yield _with_trace(draft, self._traceparent)

    async def each_async(self, drafts: AsyncIterable[Draft]) -> AsyncGenerator[Draft]:
        async for draft in drafts:
            self.jobs += 1
            yield _with_trace(draft, self._traceparent)


def _with_trace(draft: Draft, traceparent: str | None) -> Draft:
    if traceparent is None or not isinstance(draft, Draft):  # pyright: ignore
        return draft  # a value that is not a draft is refused later
    return msgspec.structs.replace(draft, trace=traceparent)


def _traceparent() -> str | None:
    """Return the current context as a traceparent; None if it is not sampled."""
    if not api.get_current_span().get_span_context().trace_flags.sampled:
        return None
    carrier: dict[str, str] = {}
    _W3C.inject(carrier)
    return carrier.get("traceparent")


def _context(traceparent: str | None) -> Context:
    """Read a traceparent; a job without a valid one begins a trace of its own."""
    return _W3C.extract({"traceparent": traceparent or ""}, context=Context())
