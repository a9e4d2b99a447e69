"""Detach task: let an event loop end without a task that cannot be stopped.

`asyncio.run` cancels every task at its end and waits for all of them. For a handler that ignores
the cancellation it would wait for ever.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any


def detach(task: asyncio.Future[Any]) -> None:
    """Remove a task from the list of tasks that the end of its event loop waits for.

    asyncio has this function for libraries with their own tasks; see "Extending" in its
    documentation.
    """
    if not isinstance(task, asyncio.Task):
        return
    with suppress(AttributeError, TypeError):
        asyncio._unregister_task(task)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
        task._log_destroy_pending = False  # pyright: ignore[reportAttributeAccessIssue]
