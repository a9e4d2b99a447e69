"""Tracing: what somebody who makes spans is told by a queue that is traced.

The queue knows nothing of spans. It asks for the trace context that a job shall carry, hands an
attempt over to be run inside its span, and tells how it ended. `metrics/otel.py` listens.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from howdah.job import Claim, Draft
from howdah.outcomes import Ending

Drafts = Iterable[Draft] | AsyncIterable[Draft]


class Tracing(Protocol):
    """One that makes spans."""

    def enqueueing(self, draft: Draft) -> AbstractContextManager[Draft]:
        """Surround the enqueueing of one job; gives it with the context it shall carry."""
        ...

    def enqueueing_many(self, drafts: Drafts) -> AbstractContextManager[Drafts]:
        """Surround the enqueueing of a stream, likewise."""
        ...

    async def running(self, claim: Claim, attempt: Callable[[], Awaitable[None]]) -> None:
        """Run an attempt inside its span."""
        ...

    def ended(self, ending: Ending) -> None:
        """Hear how an attempt ended, while it is still inside its span."""
        ...
