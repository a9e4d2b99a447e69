"""Details: a screen with everything about one thing, polled while it is open."""

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
from howdah.store.query import server_time
from howdah.top import formatting
from howdah.top.actions import Action
from howdah.top.live_screen import LiveScreen
from howdah.top.table import CHANGING_VERBS
from howdah.top.throttle import Throttle

Read = Callable[[], Awaitable[Group]]


class DetailsScreen(LiveScreen):
    """Text about one thing, and the keys that act on it."""

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
        actions: Mapping[str, Callable[[], Awaitable[Action] | Action]] | None = None,
        why: Callable[[], Awaitable[str]] | None = None,
        on_poll_now: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(queue, read_only)
        self._on_poll_now = on_poll_now
        self._read = read
        self._actions = actions or {}
        self._why = why
        self._text = Static(markup=False)
        self._throttle = Throttle(1, 1.0)

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="details"):
            yield self._text
        yield self.message_line
        yield Footer(compact=True, show_command_palette=False)

    async def poll(self) -> float:
        with server_time() as spent:
            try:
                self._text.update(await self._read())
            except HowdahError as error:
                self.show_message(str(error), formatting.WARN)
        self._throttle.record(spent.seconds)
        return self._throttle.wait

    def poll_now(self) -> None:
        if self._on_poll_now is not None:
            self._on_poll_now()
        super().poll_now()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer only the keys that work here."""
        if action != "do":
            return True
        if parameters[0] == "why":
            return self._why is not None
        return parameters[0] in self._actions and not (
            self.read_only and parameters[0] in CHANGING_VERBS
        )

    def action_do(self, verb: str) -> None:
        if verb == "why" and self._why is not None:
            self.show_answer(self._why())
        elif verb in self._actions:
            self.perform(self._actions[verb])

    def action_close(self) -> None:
        self.dismiss(None)
