"""Disown: let an event loop end without a task that cannot be stopped.

`asyncio.run` cancels every task at its end and waits for all of them. A handler that goes on
although it was cancelled would keep it waiting for ever.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


def disown(task: asyncio.Future[Any]) -> None:
    """Take a task off the list of those that the end of its event loop waits for.

    The function that does so is for those who write tasks of their own; see "Extending" in the
    documentation of asyncio.
    """
    if not isinstance(task, asyncio.Task):
        return
    with suppress(AttributeError, TypeError):
        asyncio._unregister_task(task)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        task._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]
