"""Pane: a table, or a hint if the table is empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from howdah.top.table import Table

Row = TypeVar("Row")


class Pane(Vertical, Generic[Row]):
    """One table of the main screen."""

    def __init__(self, name: str, table: Table[Row]) -> None:
        super().__init__(id=name.lower())
        self.title = name
        self.table = table
        self.hint: Static = Static(classes="hint", markup=False)

    def compose(self) -> ComposeResult:
        yield self.table
        yield self.hint

    def fill(self, rows: Sequence[Row], hint: str) -> None:
        """Show the rows, or the hint if there are none."""
        self.table.fill(rows)
        self.hint.update("" if rows else hint)
        self.hint.display = not rows


class Tab(Static):
    """The name of a pane; a click shows the pane."""

    def __init__(self, number: int, title: str) -> None:
        super().__init__(classes="tab", markup=False)
        self._number = number
        self._title = title
        self.show(None)

    def show(self, count: str | None) -> None:
        """Show the name, with the number of rows."""
        self.update(f"{self._number} {self._title}" + (f" {count}" if count is not None else ""))

    async def on_click(self) -> None:
        await self.run_action(f"screen.pane({self._number})")


AnyPane = Pane[Any]
