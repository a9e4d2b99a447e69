"""Tracing: the interface between a queue and a tracer.

The queue knows nothing about spans. It asks the tracer for the trace context of each job, lets it
run each attempt inside a span, and reports how the attempt ended. `metrics/otel.py` implements it.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from howdah.job import Claim, Draft
from howdah.outcomes import Ending

Drafts = Iterable[Draft] | AsyncIterable[Draft]


class Tracing(Protocol):
    """A tracer: it makes spans."""

    def enqueueing(self, draft: Draft) -> AbstractContextManager[Draft]:
        """Open a span around the enqueue of one job; yields the draft with its trace context."""
        ...

    def enqueueing_many(self, drafts: Drafts) -> AbstractContextManager[Drafts]:
        """Open a span around the enqueue of a stream; yields the drafts with their context."""
        ...

    async def running(self, claim: Claim, attempt: Callable[[], Awaitable[None]]) -> None:
        """Run an attempt inside a span."""
        ...

    def ended(self, ending: Ending) -> None:
        """Record how an attempt ended; called while its span is open."""
        ...
