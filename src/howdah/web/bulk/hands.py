"""Hands: a small worker inside the dashboard that runs bulk jobs, while there are any.

Comes after  walk.py    which is what it runs

It is there only while there is something to do now: a bulk job that is due, at work, or to be tried
again soon. A worker that stays and takes no other jobs would make a queue look served, and a bulk
job may be dated as far away as its producer likes. The worker has its own connections, so it takes
none from the pages. A dashboard that is mounted in another app is never told to start, so the first
request looks whether a bulk job was left behind, and one every half minute after.
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
from howdah.web.bulk.order import BULK
from howdah.web.bulk.walk import job
from howdah.web.desk import Desk
from howdah.web.visitor import visitor_in
from howdah.worker import Worker

_log = logging.getLogger("howdah.web")

SLOTS = 2
LOOK_EVERY = 30.0  # seconds
WAIT = 1.0  # seconds between two looks while somebody else runs the last of them
SOON = timedelta(seconds=30)  # a retry that is due later is found by the next look
CAP = 1000  # jobs that are counted to see whether a bulk job is among them


class Hands:
    """Runs the bulk jobs of one queue, those that were ordered with this secret."""

    def __init__(self, queue: Queue, secret: str) -> None:
        self._queue = queue
        self._secret = secret
        self._task: asyncio.Task[None] | None = None
        self._needed = False
        self._look_at = 0.0

    def needed(self) -> None:
        """Work until no bulk job is left."""
        self._needed = True
        self._look_at = time.monotonic() + LOOK_EVERY
        if self._task is None or self._task.done() or self._task.get_loop().is_closed():
            self._task = asyncio.create_task(self._work(), name="howdah-web-bulk")

    def look(self) -> None:
        """See whether a bulk job was left behind, unless that was done just now."""
        if time.monotonic() >= self._look_at:
            self.needed()

    async def stop(self) -> None:
        """Hand back what is at work, and leave."""
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
        registry.add(job(queue, self._secret), BULK, Rules(fail_on=(BadInput,)))
        worker = Worker(queue.store, registry.handlers, concurrency=SLOTS, grace=timedelta())
        async with worker:
            while await self._any_left(queue):
                await worker.run_until_idle()
                await asyncio.sleep(WAIT if await self._any_left(queue) else 0)

    async def _any_left(self, queue: Queue) -> bool:
        seen = await observe.overview(queue.store, cap=CAP, trend=False)
        return any(_to_do(one, seen.at) for one in seen.types if one.job_type == BULK)


def _to_do(one: TypeNow, now: datetime) -> bool:
    """Say whether there is something to do now, or a retry that is worth waiting for."""
    if one.claimed or one.running:
        return True
    soon = one.retrying and one.next_due is not None and one.next_due - now < SOON
    return one.paused is None and bool(one.waiting or soon)


_known: WeakKeyDictionary[Desk, Hands] = WeakKeyDictionary()


def hands_of(desk: Desk) -> Hands:
    """Return who runs the bulk jobs of a desk."""
    if desk not in _known:
        _known[desk] = Hands(desk.queue, desk.secret)
    return _known[desk]


class LeftBehind:
    """An ASGI app around the dashboard: whoever comes in makes it look for bulk jobs."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and visitor_in(scope) is not None:
            desk: Desk = scope["app"].state.desk
            if not desk.settings.read_only:
                hands_of(desk).look()
        await self._app(scope, receive, send)
