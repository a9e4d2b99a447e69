"""Batches: many items written by one call, and none of them lost because of another.

Comes after   settle, run/reports   which gather what many jobs have to say
Comes before  call.py               which writes it

The database refuses a call as a whole, also where it objects to one item's values. Then the batch
is halved until the item stands alone: it is told to the caller, and all others are written. Parts
are written in order, and each is told as soon as it is written. So a caller that is interrupted
knows what is left. Trouble that concerns every item is raised.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from howdah.errors import HowdahError
from howdah.store.errors import about_one_job

T = TypeVar("T")
R = TypeVar("R")


async def write_in_parts(
    items: Sequence[T],
    write: Callable[[Sequence[T]], Awaitable[R]],
    written: Callable[[Sequence[T], R], None],
    refused: Callable[[T, Exception], Awaitable[None]],
) -> None:
    """Write all items but those that are refused by themselves."""
    try:
        answer = await write(items)
    except Exception as error:
        # what is no error of ours was raised by a value, before anything was sent
        if isinstance(error, HowdahError) and not about_one_job(error):
            raise
        if len(items) == 1:
            await refused(items[0], error)
            return
        middle = len(items) // 2
        for part in (items[:middle], items[middle:]):
            await write_in_parts(part, write, written, refused)
    else:
        written(items, answer)
