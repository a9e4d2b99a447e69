"""Rescan: scan again the part of a slow line that its marks skip.

When a scan of the whole line is slow, claims start at marks (line.py). A job that was committed
late or released may be before them. A rescan finds it. It can take seconds, so it runs beside the
claims and never delays them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from howdah.claim.line import Line
from howdah.errors import HowdahError
from howdah.job import Claim
from howdah.safe_logging import log_named

_log = log_named("howdah.claim")

JOBS = 100  # how many to claim at a time


class Rescan:
    """Rescans one line when it is time to."""

    def __init__(
        self,
        line: Line,
        claim: Callable[[int], Awaitable[list[Claim]]],
        on_claims: Callable[[list[Claim]], None],
    ) -> None:
        self._line = line
        self._claim = claim
        self._on_claims = on_claims
        self._empty = False
        self.tasks: list[asyncio.Task[None]] = []  # the rescan that runs now, if one does

    @property
    def found_nothing(self) -> bool:
        """Whether no job is before the marks, as far as the last rescan could see."""
        return not self._line.slow or self._empty

    def start_if_due(self, idle: bool) -> None:
        """Start a rescan if it is time to; `idle` when there is nothing else to do."""
        if not idle:
            self._empty = False
        if not self.tasks and self._line.rescan_due(time.monotonic(), idle):
            self.tasks.append(asyncio.create_task(self._run(), name="howdah-rescan"))

    async def ended(self) -> None:
        """Wait until no rescan runs."""
        await asyncio.gather(*self.tasks)

    async def _run(self) -> None:
        try:
            claims = await self._claim(JOBS)
            self._empty = not claims
            if len(claims) == JOBS:  # there may be more
                self._line.rescan_soon()
            self._on_claims(claims)
        except HowdahError as error:  # the claim loop meets the same error and deals with it
            _log.warning("claim.rescan_failed error=%s", error)
        finally:
            self.tasks.clear()
