"""Table: rows that fit the width they have, and a cursor that stays on its row.

Comes before  table_types.py, table_running.py, table_workers.py, table_failures.py

Cells are drawn anew with every look, but only those that changed are written. When rows come and
go, the cursor follows the row it stood on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import DataTable

from howdah.top import words

Row = TypeVar("Row")
PADDING = 2  # columns around each cell
SCROLLBAR = 1
ACTING = ("cancel", "requeue", "pause", "drain")  # verbs that change something


@dataclass(frozen=True)
class Column:
    """A column: so wide, or taking a share of what the others leave."""

    title: str
    width: int = 0
    share: int = 0
    right: bool = False
    wide: int = 0  # shown where the screen has so many columns


class Table(DataTable[Text], Generic[Row]):
    """A table of one kind of things."""

    COLUMNS: ClassVar[tuple[Column, ...]]
    # textual's tables scroll sideways with these; ours fit
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,shift+tab", "screen.turn(-1)", "previous pane", show=False),
        Binding("right,tab", "screen.turn(1)", "Pane", key_display="tab"),
        Binding("home", "scroll_top", show=False),
        Binding("end", "scroll_bottom", show=False),
    ]

    class Wanted(Message):
        """A key was pressed over a row."""

        def __init__(self, verb: str, row: object) -> None:
            super().__init__()
            self.verb = verb
            self.row = row

    def __init__(self, read_only: bool = False) -> None:
        super().__init__(cursor_type="row")
        self._read_only = read_only
        self._by_key: dict[str, Row] = {}
        self._drawn: dict[str, list[Text]] = {}
        self._fitted: list[tuple[Column, int]] = []

    def key(self, row: Row) -> str:
        """Name a row for as long as it is there."""
        raise NotImplementedError

    def cells(self, row: Row) -> dict[str, str | Text]:
        """Say what stands in each column, by its title."""
        raise NotImplementedError

    def drawn(self, row: Row, title: str, width: int) -> Text | None:
        """Draw a cell that must know how wide it is."""
        return None

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor."""
        keys = list(self._by_key)
        return self._by_key[keys[self.cursor_row]] if self.cursor_row < len(keys) else None

    def fill(self, rows: Sequence[Row]) -> None:
        """Show these rows."""
        self._by_key = {self.key(row): row for row in rows}
        self._draw()

    def on_resize(self, _event: events.Resize) -> None:
        self._draw()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Neither offer nor take keys that change something where nothing may be changed."""
        return not (self._read_only and action == "want" and parameters[0] in ACTING)

    def action_want(self, verb: str) -> None:
        """Ask for something to be done with the row under the cursor."""
        if (row := self.chosen) is not None:
            self.post_message(self.Wanted(verb, row))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        self.action_want("details")

    def _draw(self) -> None:
        if not self.size.width:
            return
        layout = fitted(self.COLUMNS, self.size.width - SCROLLBAR)
        if layout != self._fitted:
            self._fitted = layout
            at = self.cursor_row
            self.clear(columns=True)
            for column, width in layout:
                title = Text(column.title, justify="right" if column.right else "left")
                self.add_column(title, width=width, key=column.title)
            self._anew(self._cells(), at)
            return
        cells = self._cells()
        if list(cells) != list(self._drawn):
            self._anew(cells, self.cursor_row)
            return
        for key, row in cells.items():
            for (column, _), new, old in zip(layout, row, self._drawn[key], strict=True):
                if new.markup != old.markup:
                    self.update_cell(key, column.title, new)
        self._drawn = cells

    def _anew(self, cells: dict[str, list[Text]], at: int) -> None:
        """Write every row, the cursor on the one that it stood on."""
        before = list(self._drawn)
        stood_on = before[at] if at < len(before) else None
        self._drawn = cells
        top = self.scroll_y
        self.clear()
        for key, row in cells.items():
            self.add_row(*row, key=key)
        keys = list(cells)
        if keys:
            to = keys.index(stood_on) if stood_on in cells else min(at, len(keys) - 1)
            self.move_cursor(row=to, scroll=False)
            self.scroll_to(y=top, animate=False, force=True)

    def _cells(self) -> dict[str, list[Text]]:
        made: dict[str, list[Text]] = {}
        for key, row in self._by_key.items():
            said = self.cells(row)
            made[key] = [
                self.drawn(row, column.title, width)
                or _cell(said.get(column.title, ""), column, width)
                for column, width in self._fitted
            ]
        return made


def _cell(said: str | Text, column: Column, width: int) -> Text:
    made = words.cut(said, width) if isinstance(said, str) else said.copy()
    made.truncate(width, overflow="ellipsis")
    made.justify = "right" if column.right else "left"
    return made


def fitted(columns: Sequence[Column], width: int) -> list[tuple[Column, int]]:
    """Say which columns are shown in so much room, and how wide each is."""
    shown = [column for column in columns if column.wide <= width + SCROLLBAR]
    shares = sum(column.share for column in shown)
    left = width - sum(column.width + PADDING for column in shown)
    made: list[tuple[Column, int]] = []
    for column in shown:
        given = left * column.share // shares if column.share else 0
        left, shares = left - given, shares - column.share
        made.append((column, max(4, column.width + given)))
    return made
