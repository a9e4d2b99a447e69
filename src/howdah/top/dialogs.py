"""Dialogs: a question before something is done, an answer, the help.

A question is answered with `y` or `n`, never with enter: whoever types ahead does nothing by
mistake. Their text is never read as markup.
"""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from howdah.top import words

KEYS = (
    ("↑ ↓", "move; page up and down, home and end too"),
    ("tab ← → 1-4", "go to another pane"),
    ("enter", "details of a job, a type or a worker"),
    ("w", "why a job, or a type, does not run"),
    ("/", "show types with this in their name; esc: all"),
    ("!", "all problems, and what to do"),
    ("g", "look now"),
    ("q", "quit"),
)
ACTING_KEYS = (
    ("c", "cancel a job"),
    ("r", "requeue failed jobs: all of a type, or of a group"),
    ("p", "pause a type, or resume it"),
    ("d", "drain a worker: it lets its jobs end, and stops"),
)


class Ask(ModalScreen[bool]):
    """A question with two answers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        answers = Text.assemble(("y", "bold"), " yes   ", ("n", "bold"), " no")
        with Vertical(classes="box"):
            yield Static(Text(words.clean(self._question)), classes="said")
            yield Static(answers, classes="answers")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class Tell(ModalScreen[None]):
    """Something to read, and away with any of the usual keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,w,question_mark", "close", "Close"),
    ]

    def __init__(self, text: Text) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            with VerticalScroll(classes="said"):
                yield Static(self._text)
            yield Static(Text.assemble(("esc", "bold"), " close"), classes="answers")

    def action_close(self) -> None:
        self.dismiss(None)


def helped(read_only: bool) -> Tell:
    """Make the help, without keys that do nothing here."""
    text = Text()
    for key, what in (*KEYS[:-1], *(() if read_only else ACTING_KEYS), KEYS[-1]):
        text.append(f"{key:>12}  ", style="bold")
        text.append(f"{what}\n")
    text.append(
        "\nread-only: nothing can be changed from here"
        if read_only
        else "\nWhat changes something asks first, then says what was moved.",
        style=words.DIM,
    )
    return Tell(text)
