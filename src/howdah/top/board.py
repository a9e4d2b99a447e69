"""Board: a screen that looks again and again, says what was done, and asks before it does it.

Comes before  main.py and details.py

While another screen lies over it, it does not look: what nobody sees costs nothing.
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
from howdah.top import words
from howdah.top.deeds import Deed
from howdah.top.dialogs import Ask, Tell, helped


class Board(Screen[None]):
    """A screen over a queue."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("g", "look", "Look now", show=False),
        Binding("question_mark", "help", "Help", key_display="?"),
    ]

    def __init__(self, queue: Queue, read_only: bool) -> None:
        super().__init__()
        self.queue = queue
        self.read_only = read_only
        self.said: Static = Static(id="said", markup=False)
        self._hurried = asyncio.Event()
        self._seen = asyncio.Event()  # by a person: no other screen lies over this one

    @property
    def around(self) -> App[object]:
        """The application, as far as a screen must know it."""
        return self.app  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    async def look(self) -> float:
        """Look and show what there is; returns seconds until the next time."""
        raise NotImplementedError

    def hurry(self) -> None:
        """Look at once."""
        self._hurried.set()

    def on_mount(self) -> None:
        self.run_worker(self._live(), group="live")

    def on_screen_resume(self) -> None:
        self._seen.set()

    def on_screen_suspend(self) -> None:
        self._seen.clear()

    async def _live(self) -> None:
        while True:
            await self._seen.wait()
            pause = await self.look()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurried.wait(), pause)
            self._hurried.clear()

    def say(self, text: str, style: str = "") -> None:
        """Tell something in the line at the bottom."""
        self.said.update(words.cut(text, max(1, self.size.width - 1), style))

    def act(self, make: Callable[[], Awaitable[Deed] | Deed]) -> None:
        """Ask, do it, and say what was moved."""
        if self.read_only:
            self.say("Read-only: nothing can be changed from here.", words.WARN)
            return
        self.run_worker(self._act(make))

    async def _act(self, make: Callable[[], Awaitable[Deed] | Deed]) -> None:
        try:
            made = make()
            deed = made if isinstance(made, Deed) else await made
            if not await self.around.push_screen_wait(Ask(deed.question)):
                self.say("Nothing was done.", words.DIM)
                return
            self.say(await deed.do(self.say), "bold")
        except HowdahError as error:
            self.say(f"Not done: {error}", words.BAD)
        self.hurry()

    def answer(self, asking: Awaitable[str]) -> None:
        """Show the answer to a question."""
        self.run_worker(self._answer(asking))

    async def _answer(self, asking: Awaitable[str]) -> None:
        try:
            said = Text(words.clean(await asking))
        except HowdahError as error:
            said = Text(words.clean(str(error)), style=words.WARN)
        self.around.push_screen(Tell(said))

    def action_look(self) -> None:
        self.hurry()

    def action_help(self) -> None:
        self.around.push_screen(helped(self.read_only))
