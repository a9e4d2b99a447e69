"""Behind: what a line's marks may have left out, looked for beside the claims.

Once a look at the whole line is slow, claims begin behind the marks (claim.py). What was committed
late, or handed back, stands before them. A look back finds it; it may take seconds, so it goes on
beside the claims and never holds them up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from howdah.claim.claim import Line
from howdah.errors import HowdahError
from howdah.job import Claim
from howdah.safe_logging import log_named

_log = log_named("howdah.claim")

JOBS = 100  # how many to take at a time


class Rescan:
    """Looks back at a line when it is time to."""

    def __init__(
        self,
        line: Line,
        look: Callable[[int], Awaitable[list[Claim]]],
        found: Callable[[list[Claim]], None],
    ) -> None:
        self._line = line
        self._look = look
        self._found = found
        self._empty = False
        self.tasks: list[asyncio.Task[None]] = []  # the look that is under way, if one is

    @property
    def nothing(self) -> bool:
        """Whether no job stands before the marks, as far as the last look back could tell."""
        return not self._line.slow or self._empty

    def begin(self, idle: bool) -> None:
        """Look back, if it is time to; `idle` when there is nothing else to do."""
        if not idle:
            self._empty = False
        if not self.tasks and self._line.look_back_due(time.monotonic(), idle):
            self.tasks.append(asyncio.create_task(self._go(), name="howdah-look-back"))

    async def ended(self) -> None:
        """Wait until no look back is under way."""
        await asyncio.gather(*self.tasks)

    async def _go(self) -> None:
        try:
            claims = await self._look(JOBS)
            self._empty = not claims
            if len(claims) == JOBS:  # there may be more
                self._line.look_back_soon()
            self._found(claims)
        except HowdahError as error:  # the claims meet the same trouble and deal with it
            _log.warning("claim.no_look_back error=%s", error)
        finally:
            self.tasks.clear()
