"""Waiting in tests: for a condition, with a deadline, never for a length of time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

DEADLINE = 20.0


async def eventually(condition: Callable[[], Awaitable[bool] | bool], what: str = "") -> None:
    """Return as soon as the condition holds; fail when it does not within the deadline."""
    until = time.monotonic() + DEADLINE
    while True:
        holds = condition()
        if not isinstance(holds, bool):
            holds = await holds
        if holds:
            return
        assert time.monotonic() < until, (
            f"did not come true within {DEADLINE} s: {what or condition}"
        )
        await asyncio.sleep(0.01)
