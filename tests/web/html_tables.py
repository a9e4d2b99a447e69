"""HTML tables: the text of the tables and figures of a page."""

from __future__ import annotations

from html.parser import HTMLParser


class _Reader(HTMLParser):
    """Collects the text of cells by row, and of terms with their values."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.terms: list[str] = []
        self.values: list[str] = []
        self._text: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th", "dt", "dd"):
            self._text = []

    def handle_endtag(self, tag: str) -> None:
        if self._text is None or tag not in ("td", "th", "dt", "dd"):
            return
        text = " ".join("".join(self._text).split())
        self._text = None
        {"dt": self.terms, "dd": self.values}.get(tag, self.rows[-1] if self.rows else []).append(
            text
        )

    def handle_data(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)


def _read(html: str) -> _Reader:
    reader = _Reader()
    reader.feed(html)
    return reader


def row(html: str, name: str) -> dict[str, str]:
    """Return the row of the first table whose first cell begins with a name, by column."""
    head, *rows = _read(html).rows
    cells = next(cells for cells in rows if cells and cells[0].split(" ")[0] == name)
    return dict(zip(head, cells, strict=True))


def figures(html: str) -> dict[str, str]:
    """Return the figures of a page by name."""
    reader = _read(html)
    return dict(zip(reader.terms, reader.values, strict=False))
