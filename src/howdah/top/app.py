"""App: the application, and how it looks.

All colours are the terminal's own, so what is readable there is readable here, dark or light.
Ctrl-C, SIGTERM and SIGHUP leave as `q` does: the terminal is put back as it was.
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
from howdah.top.heart import Heart
from howdah.top.main import Main


class Top(App[None]):
    """`howdah top`."""

    TITLE: str | None = "howdah top"
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c,ctrl+q", "quit", "Quit", show=False, priority=True),
    ]
    CSS_PATH: ClassVar[CSSPathType | None] = "top.tcss"

    def __init__(self, queue: Queue, heart: Heart | None = None, read_only: bool = False) -> None:
        super().__init__()
        self.theme = "ansi-dark"
        self._main = Main(queue, heart or Heart(queue.store), read_only)

    def get_default_screen(self) -> Screen[Any]:
        return self._main


async def run(queue: Queue, read_only: bool) -> None:
    """Look once, so that what is wrong is said plainly, then open the screen until it is left."""
    heart = Heart(queue.store)
    await queue.store.fetchval("select 1")
    await heart.look()
    app = Top(queue, heart, read_only)
    loop = asyncio.get_running_loop()
    if sys.platform != "win32":
        for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with suppress(RuntimeError, ValueError):
                loop.add_signal_handler(name, app.exit)
    await app.run_async()
