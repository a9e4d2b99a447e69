"""Listen: be told by the database instead of asking it.

One connection per listener, kept alive for ever: when it breaks, it is opened again with
backoff, and everybody who relied on it is told to look for themselves (a message may have
been missed). Where LISTEN cannot work there are no messages and polling alone remains.
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
    """Read which job types a wake names; none: whatever your types, look.

    Whoever may connect to the database may speak on a channel. What cannot be read is a hint
    that names nothing, like any other.
    """
    try:
        return _types.decode(message) if message else []
    except msgspec.MsgspecError:
        return []


def named_ids(message: str) -> list[UUID]:
    """Read which jobs have news, leaving out what is no id."""
    found: list[UUID] = []
    for text in message.split():
        with suppress(ValueError):
            found.append(UUID(text))
    return found


class Listener:
    """A connection that hears channels; `on_gap` is called whenever messages may be missing."""

    def __init__(
        self, store: Store, channels: list[str], on_message: OnMessage, on_gap: Callable[[], None]
    ) -> None:
        self._store = store
        self._channels = channels
        self._on_message = on_message
        self._on_gap = on_gap
        self._connection: asyncpg.Connection[asyncpg.Record] | None = None
        self._task: asyncio.Task[None] | None = None
        self._first = asyncio.Event()

    @property
    def hears(self) -> bool:
        """Whether messages arrive at this moment."""
        return self._connection is not None and not self._connection.is_closed()

    async def start(self) -> None:
        """Begin to listen, and return once it was tried."""
        if not self._store.can_listen:
            return
        self._task = asyncio.create_task(self._keep(), name="howdah-listen")
        await self._first.wait()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    async def run(self, use: Callable[[Any], Awaitable[Any]]) -> bool:
        """Do something on the listening connection; False where there is none."""
        connection = self._connection
        if connection is None or connection.is_closed():
            return False
        try:
            await use(connection)
        except (TimeoutError, ClosingRace):  # nobody is there any more, or only to say goodbye
            connection.terminate()
            return False
        except CONNECTION_ERRORS:
            return False
        return True

    async def _keep(self) -> None:
        wait = 0.1
        while True:
            try:
                await self._listen_until_lost()
                wait = 0.1
            except (HowdahError, *CONNECTION_ERRORS) as error:
                if not self._store.can_listen:
                    return
                _log.warning("listen.lost error=%s retry_in=%.1fs", error, wait)
            finally:
                self._first.set()
            self._on_gap()
            await asyncio.sleep(wait)
            wait = min(wait * 2, 5.0)

    async def _listen_until_lost(self) -> None:
        connection = await self._store.connect_to_listen()
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            for channel in self._channels:
                await connection.add_listener(channel, self._heard)
            self._connection = connection
            self._first.set()
            self._on_gap()
            while not lost.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(lost.wait(), timeout=30)
                    break
                await connection.execute("select 1", timeout=10)  # a dead peer says nothing
        finally:
            self._connection = None
            with suppress(Exception):
                connection.terminate()

    def _heard(self, _connection: Any, _pid: int, channel: str, message: Any) -> None:
        self._on_message(channel, str(message))
