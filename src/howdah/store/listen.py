"""Listen: receive the messages that the database sends with NOTIFY.

Each listener has one connection. When it breaks, it is opened again after a growing pause, and
`on_gap` is called: messages may have been missed, so the owner must query for itself. Where
LISTEN does not work there are no messages, and the owner polls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from howdah.errors import HowdahError
from howdah.growing_pause import GrowingPause
from howdah.safe_logging import log_named
from howdah.store.errors import CONNECTION_ERRORS, ClosingRace
from howdah.store.store import Store

WAKE = "howdah_wake"
NEWS = "howdah_news"
DUE = "howdah_due"

_log = log_named("howdah.listen")

_types = msgspec.json.Decoder(list[str])

OnMessage = Callable[[str, str], None]


def named_types(message: str) -> list[str]:
    """Read the job types that have new jobs; empty: any type may have.

    Anyone who may connect to the database may send on a channel. A message that cannot be read
    counts as one that names no types.
    """
    try:
        return _types.decode(message) if message else []
    except msgspec.MsgspecError:
        return []


def named_ids(message: str) -> list[UUID]:
    """Read the ids of jobs that changed; words that are no id are skipped."""
    ids: list[UUID] = []
    for text in message.split():
        with suppress(ValueError):
            ids.append(UUID(text))
    return ids


class Listener:
    """Listens on channels; calls `on_gap` whenever messages may have been missed."""

    def __init__(
        self, store: Store, channels: list[str], on_message: OnMessage, on_gap: Callable[[], None]
    ) -> None:
        self._store = store
        self._channels = channels
        self._on_message = on_message
        self._on_gap = on_gap
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._task: asyncio.Task[None] | None = None
        self._tried_once = asyncio.Event()

    @property
    def is_listening(self) -> bool:
        """Whether messages arrive at this moment."""
        return self._connection is not None and not self._connection.is_closed()

    async def start(self) -> None:
        """Start to listen, and return after the first try, successful or not."""
        if not self._store.can_listen:
            return
        self._task = asyncio.create_task(self._reconnect_forever(), name="howdah-listen")
        await self._tried_once.wait()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def run(self, use: Callable[[Any], Awaitable[Any]]) -> bool:
        """Use the listening connection; returns False if there is none."""
        connection = self._connection
        if connection is None or connection.is_closed():
            return False
        try:
            await use(connection)
        except (TimeoutError, ClosingRace):  # the server is gone, or is closing the connection
            connection.terminate()
            return False
        except CONNECTION_ERRORS:
            return False
        return True

    async def _reconnect_forever(self) -> None:
        pause = GrowingPause(0.1, 5.0, self._store.reachable)
        while True:
            try:
                await self._listen_until_lost(pause)
                seconds = pause.next()
            except (HowdahError, *CONNECTION_ERRORS) as error:
                if not self._store.can_listen:
                    return
                seconds = pause.next()
                _log.warning("listen.lost error=%s retry_in=%.1fs", error, seconds)
            finally:
                self._tried_once.set()
            self._on_gap()
            await self._store.reachable.wait(seconds)

    async def _listen_until_lost(self, pause: GrowingPause) -> None:
        connection = await self._store.connect_to_listen()
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            for channel in self._channels:
                await connection.add_listener(channel, self._received)
            self._connection = connection
            self._tried_once.set()
            pause.reset()
            self._on_gap()
            while not lost.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(lost.wait(), timeout=30)
                    break
                # a server that is gone sends nothing: only a query finds out
                await connection.execute("select 1", timeout=10)
        finally:
            self._connection = None
            with suppress(Exception):
                connection.terminate()

    def _received(self, _connection: Any, _pid: int, channel: str, message: Any) -> None:
        self._on_message(channel, str(message))
