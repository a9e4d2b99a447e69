"""Dialogs: a question before a change, a text to read, the help.

A question is answered with `y` or `n`, never with enter, so typing ahead changes nothing. The
text of a dialog is never parsed as markup.
"""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from howdah.top import formatting

KEYS = (
    ("↑ ↓", "move; page up and down, home and end too"),
    ("tab ← → 1-4", "show another pane"),
    ("enter", "details of a job, a type or a worker"),
    ("w", "why a job or a type does not run"),
    ("/", "show only types with this text in their name; esc shows all"),
    ("!", "all problems, and what to do about them"),
    ("g", "refresh now"),
    ("q", "quit"),
)
CHANGING_KEYS = (
    ("c", "cancel a job"),
    ("r", "requeue failed jobs: all of a type, or of a group"),
    ("p", "pause a type, or resume it"),
    ("d", "drain a worker: it finishes its jobs and stops"),
)


class ConfirmDialog(ModalScreen[bool]):
    """A question that is answered with yes or no."""

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
            yield Static(Text(formatting.clean(self._question)), classes="content")
            yield Static(answers, classes="answers")

    def action_answer(self, yes: bool) -> None:
        self.dismiss(yes)


class TextDialog(ModalScreen[None]):
    """A text to read; the usual keys close it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,enter,q,w,question_mark", "close", "Close"),
    ]

    def __init__(self, text: Text) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with Vertical(classes="box"):
            with VerticalScroll(classes="content"):
                yield Static(self._text)
            yield Static(Text.assemble(("esc", "bold"), " close"), classes="answers")

    def action_close(self) -> None:
        self.dismiss(None)


def help_dialog(read_only: bool) -> TextDialog:
    """Return the help, without the keys that do nothing here."""
    text = Text()
    for key, what in (*KEYS[:-1], *(() if read_only else CHANGING_KEYS), KEYS[-1]):
        text.append(f"{key:>12}  ", style="bold")
        text.append(f"{what}\n")
    text.append(
        "\nRead-only: nothing can be changed here."
        if read_only
        else "\nA key that changes something asks first, then says what it changed.",
        style=formatting.DIM,
    )
    return TextDialog(text)
