"""Details: everything about one thing on a screen of its own, read again while it is open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar

from rich.console import Group
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Footer, Static

from howdah.client.queue import Queue
from howdah.errors import HowdahError
from howdah.store.query import spending
from howdah.top import words
from howdah.top.board import Board
from howdah.top.deeds import Deed
from howdah.top.pace import Pace
from howdah.top.table import ACTING

Read = Callable[[], Awaitable[Group]]


class Details(Board):
    """Text about one thing, and what can be done with it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q", "close", "Back", key_display="esc"),
        Binding("c", "do('cancel')", "Cancel"),
        Binding("r", "do('requeue')", "Requeue"),
        Binding("p", "do('pause')", "Pause"),
        Binding("d", "do('drain')", "Drain"),
        Binding("w", "do('why')", "Why"),
    ]

    def __init__(
        self,
        queue: Queue,
        read_only: bool,
        read: Read,
        deeds: Mapping[str, Callable[[], Awaitable[Deed] | Deed]] | None = None,
        why: Callable[[], Awaitable[str]] | None = None,
        hurry: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(queue, read_only)
        self._hurry = hurry
        self._read = read
        self._deeds = deeds or {}
        self._why = why
        self._text = Static(markup=False)
        self._pace = Pace(1, 1.0)

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="details"):
            yield self._text
        yield self.said
        yield Footer(compact=True, show_command_palette=False)

    async def look(self) -> float:
        with spending() as spent:
            try:
                self._text.update(await self._read())
            except HowdahError as error:
                self.say(str(error), words.WARN)
        self._pace.looked(spent.seconds)
        return self._pace.wait

    def hurry(self) -> None:
        if self._hurry is not None:
            self._hurry()
        super().hurry()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only what can be done here."""
        if action != "do":
            return True
        if parameters[0] == "why":
            return self._why is not None
        return parameters[0] in self._deeds and not (self.read_only and parameters[0] in ACTING)

    def action_do(self, verb: str) -> None:
        if verb == "why" and self._why is not None:
            self.answer(self._why())
        elif verb in self._deeds:
            self.act(self._deeds[verb])

    def action_close(self) -> None:
        self.dismiss(None)
