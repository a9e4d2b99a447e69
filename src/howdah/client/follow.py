"""Follow: receive the changes of many jobs over one connection.

Comes after   settle, run/   which notify followers
In SQL        sql/80_observe/watch.sql, sql/25_notify/notify_followers.sql

Each follower of a job has a `Subscription`. One task reads all changed jobs in one statement and
delivers them to the subscriptions. NOTIFY names the changed jobs. A poll of all followed jobs
covers lost messages; where LISTEN does not work, there is only the poll.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from uuid import UUID

from howdah.errors import HowdahError, JobNotFound
from howdah.job import Job
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store.errors import transient
from howdah.store.listen import NEWS, Listener, named_ids
from howdah.store.watch import watch

_log = log_named("howdah.follow")

BATCH = 1000
POLL = 5.0  # seconds, while messages arrive
POLL_WITHOUT_LISTEN = 0.5  # seconds, while they do not


class Subscription:
    """One follower of one job."""

    __slots__ = ("_changed", "_error", "_follower", "_job", "id")

    def __init__(self, id: UUID, follower: LoopFollower) -> None:
        self.id: UUID = id
        self._follower = follower
        self._changed = asyncio.Event()
        self._job: Job | None = None
        self._error: BaseException | None = None

    async def next(self) -> Job:
        """Wait for a change and return the job; the first call returns at once."""
        await self._changed.wait()
        self._changed.clear()
        if self._error is not None:
            raise self._error
        if self._job is None:
            raise JobNotFound.with_id(self.id)
        return self._job

    def close(self) -> None:
        self._follower.unsubscribe(self)

    def deliver(self, job: Job | None, error: BaseException | None = None) -> None:
        self._job, self._error = job, error
        self._changed.set()


class Follower:
    """All jobs that one queue object follows, separately for each event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loops: dict[asyncio.AbstractEventLoop, LoopFollower] = {}

    def subscribe(self, id: UUID) -> Subscription:
        loop = asyncio.get_running_loop()
        follower = self._loops.get(loop)
        if follower is None:
            for closed in [other for other in self._loops if other.is_closed()]:
                self._loops.pop(closed, None)
            follower = self._loops[loop] = LoopFollower(self._store)
        return follower.subscribe(id)

    async def close(self) -> None:
        """Stop following in the running event loop."""
        follower = self._loops.pop(asyncio.get_running_loop(), None)
        if follower is not None:
            await follower.close()


class LoopFollower:
    """All jobs that are followed in one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._subscriptions: defaultdict[UUID, set[Subscription]] = defaultdict(set)
        self._changed: set[UUID] = set()  # jobs to read
        self._has_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._listener = Listener(self._store, [NEWS], self._received, self._mark_all_changed)

    def subscribe(self, id: UUID) -> Subscription:
        subscription = Subscription(id, self)
        self._subscriptions[id].add(subscription)
        self._mark_changed(id)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="howdah-follow")
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        subscriptions = self._subscriptions.get(subscription.id)
        if subscriptions is not None:
            subscriptions.discard(subscription)
            if not subscriptions:
                del self._subscriptions[subscription.id]

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._listener.stop()

    def _mark_changed(self, id: UUID) -> None:
        self._changed.add(id)
        self._has_changed.set()

    def _received(self, _channel: str, message: str) -> None:
        for id in named_ids(message):
            if id in self._subscriptions:
                self._mark_changed(id)

    def _mark_all_changed(self) -> None:
        self._changed.update(self._subscriptions)
        if self._changed:
            self._has_changed.set()

    async def _run(self) -> None:
        await self._store.open()
        await self._listener.start()
        while True:
            try:
                poll = POLL if self._listener.is_listening else POLL_WITHOUT_LISTEN
                async with asyncio.timeout(poll):
                    await self._has_changed.wait()
            except TimeoutError:
                self._mark_all_changed()
            self._has_changed.clear()
            ids, self._changed = [id for id in self._changed if id in self._subscriptions], set()
            for start in range(0, len(ids), BATCH):
                await self._refresh(ids[start : start + BATCH])

    async def _refresh(self, ids: list[UUID]) -> None:
        try:
            jobs = {job.id: job for job in await watch(self._store, ids)}
        except HowdahError as error:
            if transient(error):
                _log.warning("follow.waiting jobs=%d error=%s", len(ids), error)
                self._changed.update(ids)
                await asyncio.sleep(0.5)
                self._has_changed.set()
                return
            for id in ids:
                self._deliver(id, None, error)
            return
        for id in ids:
            self._deliver(id, jobs.get(id))

    def _deliver(self, id: UUID, job: Job | None, error: BaseException | None = None) -> None:
        for subscription in list(self._subscriptions.get(id, ())):
            subscription.deliver(job, error)
