"""Live screen: a screen that polls the queue, and asks before it changes something.

main.py and details.py build on it. It does not poll while another screen covers it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import ClassVar

from rich.text import Text
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Static

from howdah.client.queue import Queue
from howdah.errors import HowdahError
from howdah.top import formatting
from howdah.top.actions import Action
from howdah.top.dialogs import ConfirmDialog, TextDialog, help_dialog


class LiveScreen(Screen[None]):
    """A screen that shows the queue."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "poll", "Refresh now", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
    ]

    def __init__(self, queue: Queue, read_only: bool) -> None:
        super().__init__()
        self.queue = queue
        self.read_only = read_only
        self.message_line: Static = Static(id="message", markup=False)
        self._poll_requested = asyncio.Event()
        self._on_top = asyncio.Event()  # set while no other screen covers this one

    @property
    def textual_app(self) -> App[object]:
        """The application, with a known type."""
        return self.app  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    async def poll(self) -> float:
        """Read the queue and show it; returns the seconds until the next poll."""
        raise NotImplementedError

    def poll_now(self) -> None:
        """Poll at once."""
        self._poll_requested.set()

    def on_mount(self) -> None:
        self.run_worker(self._poll_forever(), group="live")

    def on_screen_resume(self) -> None:
        self._on_top.set()

    def on_screen_suspend(self) -> None:
        self._on_top.clear()

    async def _poll_forever(self) -> None:
        while True:
            await self._on_top.wait()
            pause = await self.poll()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._poll_requested.wait(), pause)
            self._poll_requested.clear()

    def show_message(self, text: str, style: str = "") -> None:
        """Show a message in the line at the bottom."""
        self.message_line.update(formatting.cut(text, max(1, self.size.width - 1), style))

    def perform(self, make_action: Callable[[], Awaitable[Action] | Action]) -> None:
        """Ask, run the action, and show its result."""
        if self.read_only:
            self.show_message("Read-only: nothing can be changed here.", formatting.WARN)
            return
        self.run_worker(self._perform(make_action))

    async def _perform(self, make_action: Callable[[], Awaitable[Action] | Action]) -> None:
        try:
            made = make_action()
            action = made if isinstance(made, Action) else await made
            if not await self.textual_app.push_screen_wait(ConfirmDialog(action.question)):
                self.show_message("Nothing was changed.", formatting.DIM)
                return
            self.show_message(await action.run(self.show_message), "bold")
        except HowdahError as error:
            self.show_message(f"Nothing was changed: {error}", formatting.BAD)
        self.poll_now()

    def show_answer(self, answer: Awaitable[str]) -> None:
        """Show the answer to a question."""
        self.run_worker(self._show_answer(answer))

    async def _show_answer(self, answer: Awaitable[str]) -> None:
        try:
            text = Text(formatting.clean(await answer))
        except HowdahError as error:
            text = Text(formatting.clean(str(error)), style=formatting.WARN)
        self.textual_app.push_screen(TextDialog(text))

    def action_poll(self) -> None:
        self.poll_now()

    def action_help(self) -> None:
        self.textual_app.push_screen(help_dialog(self.read_only))
