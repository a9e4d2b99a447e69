"""Table: a table that fits its width, and whose cursor stays on its row.

table_types.py, table_running.py, table_workers.py and table_failures.py build on it. Each fill
formats all cells and writes those that changed. If rows come or go, the cursor follows its row.
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

from howdah.top import formatting

Row = TypeVar("Row")
PADDING = 2  # characters around each cell
SCROLLBAR = 1
CHANGING_VERBS = ("cancel", "requeue", "pause", "drain")  # verbs that change something


@dataclass(frozen=True)
class Column:
    """A column: it has a fixed width, or a share of the width that the others leave."""

    title: str
    width: int = 0
    share: int = 0
    right: bool = False
    min_screen: int = 0  # shown on screens with at least so many characters per line


class Table(DataTable[Text], Generic[Row]):
    """A table of one kind of rows."""

    COLUMNS: ClassVar[tuple[Column, ...]]
    # Textual scrolls sideways with these keys; our tables always fit
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,shift+tab", "screen.turn(-1)", "previous pane", show=False),
        Binding("right,tab", "screen.turn(1)", "Pane", key_display="tab"),
        Binding("home", "scroll_top", show=False),
        Binding("end", "scroll_bottom", show=False),
    ]

    class ActionRequested(Message):
        """A key was pressed on a row."""

        def __init__(self, verb: str, row: object) -> None:
            super().__init__()
            self.verb = verb
            self.row = row

    def __init__(self, read_only: bool = False) -> None:
        super().__init__(cursor_type="row")
        self._read_only = read_only
        self._by_key: dict[str, Row] = {}
        self._drawn: dict[str, list[Text]] = {}
        self._layout: list[tuple[Column, int]] = []

    def key(self, row: Row) -> str:
        """Return a key that identifies the row across polls."""
        raise NotImplementedError

    def cells(self, row: Row) -> dict[str, str | Text]:
        """Return the content of each column by its title."""
        raise NotImplementedError

    def draw_cell(self, row: Row, title: str, width: int) -> Text | None:
        """Return a cell whose content depends on its width; None for any other cell."""
        return None

    @property
    def selected_row(self) -> Row | None:
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
        """Disable the keys that change something in a read-only view."""
        return not (self._read_only and action == "request" and parameters[0] in CHANGING_VERBS)

    def action_request(self, verb: str) -> None:
        """Request an action on the row under the cursor."""
        if (row := self.selected_row) is not None:
            self.post_message(self.ActionRequested(verb, row))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        event.stop()
        self.action_request("details")

    def _draw(self) -> None:
        if not self.size.width:
            return
        layout = fit_columns(self.COLUMNS, self.size.width - SCROLLBAR)
        if layout != self._layout:
            self._layout = layout
            cursor = self.cursor_row
            self.clear(columns=True)
            for column, width in layout:
                title = Text(column.title, justify="right" if column.right else "left")
                self.add_column(title, width=width, key=column.title)
            self._rewrite(self._cells(), cursor)
            return
        cells = self._cells()
        if list(cells) != list(self._drawn):
            self._rewrite(cells, self.cursor_row)
            return
        for key, row in cells.items():
            for (column, _), new, old in zip(layout, row, self._drawn[key], strict=True):
                if new.markup != old.markup:
                    self.update_cell(key, column.title, new)
        self._drawn = cells

    def _rewrite(self, cells: dict[str, list[Text]], cursor: int) -> None:
        """Write every row again, and keep the cursor on its row."""
        before = list(self._drawn)
        selected = before[cursor] if cursor < len(before) else None
        self._drawn = cells
        top = self.scroll_y
        self.clear()
        for key, row_cells in cells.items():
            self.add_row(*row_cells, key=key)
        keys = list(cells)
        if keys:
            row = keys.index(selected) if selected in cells else min(cursor, len(keys) - 1)
            self.move_cursor(row=row, scroll=False)
            self.scroll_to(y=top, animate=False, force=True)

    def _cells(self) -> dict[str, list[Text]]:
        cells: dict[str, list[Text]] = {}
        for key, row in self._by_key.items():
            content = self.cells(row)
            cells[key] = [
                self.draw_cell(row, column.title, width)
                or _cell(content.get(column.title, ""), column, width)
                for column, width in self._layout
            ]
        return cells


def _cell(content: str | Text, column: Column, width: int) -> Text:
    cell = formatting.cut(content, width) if isinstance(content, str) else content.copy()
    cell.truncate(width, overflow="ellipsis")
    cell.justify = "right" if column.right else "left"
    return cell


def fit_columns(columns: Sequence[Column], width: int) -> list[tuple[Column, int]]:
    """Return the columns that fit into the width, and the width of each."""
    shown = [column for column in columns if column.min_screen <= width + SCROLLBAR]
    shares = sum(column.share for column in shown)
    left = width - sum(column.width + PADDING for column in shown)
    layout: list[tuple[Column, int]] = []
    for column in shown:
        extra = left * column.share // shares if column.share else 0
        left, shares = left - extra, shares - column.share
        layout.append((column, max(4, column.width + extra)))
    return layout
