"""Runner: a small worker inside the dashboard that runs bulk jobs while there are any.

The worker runs only while a bulk job is due, running, or to be retried soon. A worker that stays
would look like one that serves the queue, and a bulk job may be scheduled for any future time. It
has its own connections, so it takes none from the pages. Nobody starts a mounted dashboard, so the
first request checks for unfinished bulk jobs, and then one request every half minute.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from datetime import datetime, timedelta
from weakref import WeakKeyDictionary

from starlette.types import ASGIApp, Receive, Scope, Send

from howdah import observe
from howdah.client.queue import Queue
from howdah.client.registry import Registry
from howdah.errors import BadInput, HowdahError
from howdah.handler import Rules
from howdah.observe import TypeNow
from howdah.web.bulk.job import bulk_handler
from howdah.web.bulk.request import BULK
from howdah.web.context import DashboardContext
from howdah.web.visitor import visitor_in
from howdah.worker import Worker

_log = logging.getLogger("howdah.web")

SLOTS = 2
CHECK_EVERY = 30.0  # seconds
WAIT = 1.0  # seconds between two checks while another process runs the last bulk job
SOON = timedelta(seconds=30)  # the next check finds a retry that is due later
CAP = 1000  # the counts need not be exact


class BulkRunner:
    """Runs the bulk jobs of one queue that were signed with this secret."""

    def __init__(self, queue: Queue, secret: str) -> None:
        self._queue = queue
        self._secret = secret
        self._task: asyncio.Task[None] | None = None
        self._needed = False
        self._check_at = 0.0

    def start(self) -> None:
        """Run bulk jobs until none is left."""
        self._needed = True
        self._check_at = time.monotonic() + CHECK_EVERY
        if self._task is None or self._task.done() or self._task.get_loop().is_closed():
            self._task = asyncio.create_task(self._work(), name="howdah-web-bulk")

    def check(self) -> None:
        """Run unfinished bulk jobs, unless that was checked just now."""
        if time.monotonic() >= self._check_at:
            self.start()

    async def stop(self) -> None:
        """Release the running job and stop."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _work(self) -> None:
        while self._needed:
            self._needed = False
            queue = self._queue.for_other_loop()
            try:
                async with queue:
                    await self._work_on(queue)
            except HowdahError as error:
                _log.warning("web.bulk cannot work now: %s", error)

    async def _work_on(self, queue: Queue) -> None:
        if not await self._any_left(queue):
            return
        registry = Registry()
        registry.add(bulk_handler(queue, self._secret), BULK, Rules(fail_on=(BadInput,)))
        worker = Worker(queue.store, registry.handlers, concurrency=SLOTS, grace=timedelta())
        async with worker:
            while await self._any_left(queue):
                await worker.run_until_idle()
                await asyncio.sleep(WAIT if await self._any_left(queue) else 0)

    async def _any_left(self, queue: Queue) -> bool:
        overview = await observe.overview(queue.store, cap=CAP, trend=False)
        return any(_has_work(type, overview.at) for type in overview.types if type.job_type == BULK)


def _has_work(type: TypeNow, now: datetime) -> bool:
    """Return whether a job can run now, or a retry is due soon."""
    if type.claimed or type.running:
        return True
    soon = type.retrying and type.next_due is not None and type.next_due - now < SOON
    return type.paused is None and bool(type.waiting or soon)


_runners: WeakKeyDictionary[DashboardContext, BulkRunner] = WeakKeyDictionary()


def runner_of(context: DashboardContext) -> BulkRunner:
    """Return the runner of a dashboard."""
    if context not in _runners:
        _runners[context] = BulkRunner(context.queue, context.secret)
    return _runners[context]


class ResumeBulkJobs:
    """ASGI middleware: authenticated requests check for unfinished bulk jobs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and visitor_in(scope) is not None:
            context: DashboardContext = scope["app"].state.context
            if not context.settings.read_only:
                runner_of(context).check()
        await self._app(scope, receive, send)
