"""Follow: hear how jobs fare, many of them over one connection.

Comes after   settle, run/   which announce what changed
In SQL        sql/80_observe/watch.sql, sql/25_notify/notify_followers.sql

Whoever follows a job holds a `Subscription`. One task asks the database about all jobs that
have news, in one statement, and hands every subscription the job as it stands. News comes by
NOTIFY; a poll of everything that is followed is the safety net, and the only way where
LISTEN cannot work.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from uuid import UUID

from howdah.errors import HowdahError, JobNotFound
from howdah.job import Job
from howdah.safe_logging import log_named
from howdah.store import Store, ask
from howdah.store.errors import transient
from howdah.store.listen import NEWS, Listener, named_ids

_log = log_named("howdah.follow")

BATCH = 1000
POLL = 5.0  # seconds, while messages arrive
POLL_DEAF = 0.5  # seconds, while they do not


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
        """Wait for news and return the job as it stands; the first call answers at once."""
        await self._changed.wait()
        self._changed.clear()
        if self._error is not None:
            raise self._error
        if self._job is None:
            raise JobNotFound(
                f"there is no job {self.id}: never committed, or pruned after its retention"
            )
        return self._job

    def close(self) -> None:
        self._follower.unsubscribe(self)

    def deliver(self, job: Job | None, error: BaseException | None = None) -> None:
        self._job, self._error = job, error
        self._changed.set()


class Follower:
    """Everything that one queue object follows, in each event loop by itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loops: dict[asyncio.AbstractEventLoop, LoopFollower] = {}

    def subscribe(self, id: UUID) -> Subscription:
        loop = asyncio.get_running_loop()
        here = self._loops.get(loop)
        if here is None:
            for other in [other for other in self._loops if other.is_closed()]:
                self._loops.pop(other, None)
            here = self._loops[loop] = LoopFollower(self._store)
        return here.subscribe(id)

    async def close(self) -> None:
        """End what is followed in the running event loop."""
        here = self._loops.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.close()


class LoopFollower:
    """Everything that is followed in one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._subscriptions: defaultdict[UUID, set[Subscription]] = defaultdict(set)
        self._news: set[UUID] = set()
        self._has_news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._listener = Listener(self._store, [NEWS], self._heard, self._everything_is_news)

    def subscribe(self, id: UUID) -> Subscription:
        subscription = Subscription(id, self)
        self._subscriptions[id].add(subscription)
        self._tell(id)
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

    def _tell(self, id: UUID) -> None:
        self._news.add(id)
        self._has_news.set()

    def _heard(self, _channel: str, message: str) -> None:
        for id in named_ids(message):
            if id in self._subscriptions:
                self._tell(id)

    def _everything_is_news(self) -> None:
        self._news.update(self._subscriptions)
        if self._news:
            self._has_news.set()

    async def _run(self) -> None:
        await self._store.open()
        await self._listener.start()
        while True:
            try:
                async with asyncio.timeout(POLL if self._listener.hears else POLL_DEAF):
                    await self._has_news.wait()
            except TimeoutError:
                self._everything_is_news()
            self._has_news.clear()
            ids, self._news = [id for id in self._news if id in self._subscriptions], set()
            for start in range(0, len(ids), BATCH):
                await self._refresh(ids[start : start + BATCH])

    async def _refresh(self, ids: list[UUID]) -> None:
        try:
            jobs = {job.id: job for job in await ask.watch(self._store, ids)}
        except HowdahError as error:
            if transient(error):
                _log.warning("follow.waiting jobs=%d error=%s", len(ids), error)
                self._news.update(ids)
                await asyncio.sleep(0.5)
                self._has_news.set()
                return
            for id in ids:
                self._deliver(id, None, error)
            return
        for id in ids:
            self._deliver(id, jobs.get(id))

    def _deliver(self, id: UUID, job: Job | None, error: BaseException | None = None) -> None:
        for subscription in list(self._subscriptions.get(id, ())):
            subscription.deliver(job, error)
