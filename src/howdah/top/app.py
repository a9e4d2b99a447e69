"""App: the application, and how it ends.

The colours are those of the terminal, so the text is readable on a dark and on a light one.
Ctrl-C, SIGTERM and SIGHUP end it like `q`: the terminal is restored.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from typing import Any, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.types import CSSPathType

from howdah.client.queue import Queue
from howdah.top.main import MainScreen
from howdah.top.poller import Poller


class Top(App[None]):
    """The application of `howdah top`."""

    TITLE: str | None = "howdah top"
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "quit", "Quit", show=False, priority=True),
    ]
    CSS_PATH: ClassVar[CSSPathType | None] = "top.tcss"

    def __init__(self, queue: Queue, poller: Poller | None = None, read_only: bool = False) -> None:
        super().__init__()
        self.theme = "ansi-dark"
        self._main = MainScreen(queue, poller or Poller(queue.store), read_only)

    def get_default_screen(self) -> Screen[Any]:
        return self._main


async def run(queue: Queue, read_only: bool) -> None:
    """Poll once, so that an error is printed and not drawn; then show the screen until it ends."""
    poller = Poller(queue.store)
    async with queue.store.acquire():
        pass  # an unreachable database or a missing schema is an error of the command
    await poller.poll()
    app = Top(queue, poller, read_only)
    loop = asyncio.get_running_loop()
    if sys.platform != "win32":
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with suppress(RuntimeError, ValueError):
                loop.add_signal_handler(name, app.exit)
    await app.run_async()
