"""Shared task: run attempts in asyncio tasks; attempts that never wait share one.

A task takes about as long as all else that is done to run a job that does nothing. So attempts run
one after another in one task, as long as each of them ends in its first step. An attempt that waits
keeps the task for itself, and the attempts after it get tasks of their own. From then on, every
attempt of its job type gets a task of its own at once.

An attempt also leaves the task if it has set a context variable or asked to cancel its task. So no
attempt finds what another one left behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any

from howdah.run.attempt import Attempt
from howdah.run.context import current


class SharedTask:
    """Runs attempts, in one task for as long as they do not wait."""

    def __init__(self, run: Callable[[Attempt], Coroutine[Any, Any, None]]) -> None:
        self._run = run
        self._loop = asyncio.get_running_loop()
        self._empty_context = copy_context()
        self._queue: deque[Attempt] = deque()  # for the shared task
        self._first_step: object | None = None  # set until the first step of that task has ended
        self._types_that_wait: set[str] = set()

    def start(self, attempt: Attempt) -> None:
        """Run an attempt soon."""
        if attempt.claim.job_type in self._types_that_wait:
            self._start_alone(attempt)
            return
        self._queue.append(attempt)
        if self._first_step is None:
            self._first_step = first_step = object()
            self._loop.create_task(self._run_queue(first_step))
            self._loop.call_soon(self._end_first_step, context=self._empty_context)

    def _start_alone(self, attempt: Attempt) -> None:
        attempt.task = self._loop.create_task(self._run(attempt))

    async def _run_queue(self, first_step: object) -> None:
        """Run the attempts of the queue, until one of them waits or changes this task."""
        task = asyncio.current_task()
        assert task is not None
        while self._queue:
            attempt = self._queue.popleft()
            if attempt.ended:  # stopped before it began
                continue
            attempt.task = task
            current.set(attempt.context)  # as `_run` does: that must not count as a change
            before = copy_context()
            await self._run(attempt)
            if self._first_step is not first_step:  # it has waited
                self._types_that_wait.add(attempt.claim.job_type)
                return
            if task.cancelling() or _has_changed(before):
                return

    def _end_first_step(self) -> None:
        """Called right after the first step of the shared task: what is left must not wait."""
        self._first_step = None
        while self._queue:
            attempt = self._queue.popleft()
            if not attempt.ended:
                self._start_alone(attempt)


def _has_changed(before: Context) -> bool:
    """Whether context variables were set since then; says yes if their values do not compare."""
    try:
        return copy_context() != before
    except BaseException:  # values of the user's program may raise anything
        return True
