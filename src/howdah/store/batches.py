"""Batches: write many items with one call, and lose none because of another one.

Comes after   settle, run/reports   which gather the items of many jobs
Comes before  settle.py, run.py     which write them

The database refuses a whole call even if only one item has a bad value. Then the batch is halved
until the bad item is alone. That item is reported to the caller, and all others are written. Parts
are written in order and reported one by one, so an interrupted caller knows what is left. An
error that concerns every item is raised.
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
    """Write all items except those that the database refuses one by one."""
    try:
        answer = await write(items)
    except Exception as error:
        # any other exception comes from encoding a value: nothing was sent
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
