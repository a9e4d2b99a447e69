"""Waiting: the one way in which tests wait for a condition.

`eventually` is for async code, `wait_until` for sync code. Both return as soon as the condition
holds, and fail after a deadline. A condition that raises ends the wait at once, for example if the
process that it waits for has died. No test sleeps for a length of time instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

DEADLINE = 30.0  # seconds
PAUSE = 0.01  # seconds between two checks

Message = str | Callable[[], str]  # a function is called only if the deadline has passed


async def eventually(
    condition: Callable[[], Awaitable[bool] | bool],
    message: Message = "",
    *,
    deadline: float = DEADLINE,
) -> None:
    """Return as soon as the condition holds; fail if it does not within the deadline."""
    until = time.monotonic() + deadline
    while True:
        holds = condition()
        if not isinstance(holds, bool):
            holds = await holds
        if holds:
            return
        _check(until, deadline, message or str(condition))
        await asyncio.sleep(PAUSE)


def wait_until(
    condition: Callable[[], object],
    message: Message = "",
    *,
    deadline: float = DEADLINE,
    pause: float = PAUSE,
) -> None:
    """Return as soon as the condition is true; fail if it is not within the deadline."""
    until = time.monotonic() + deadline
    while not condition():
        _check(until, deadline, message or str(condition))
        time.sleep(pause)


def _check(until: float, deadline: float, message: Message) -> None:
    if time.monotonic() >= until:
        text = message if isinstance(message, str) else message()
        raise AssertionError(f"did not come true within {deadline:g} s: {text}")
