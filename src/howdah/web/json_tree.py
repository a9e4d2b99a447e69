"""JSON tree: JSON to look at, folded where it is long, with every number as it was written.

Comes after  observe/exact.py  which reads it as text
Comes before pages/job.py

A number never becomes a float: `Number` keeps its digits. What is too much for a page is left out
and counted; whoever wants all of it takes `text`.
"""

from __future__ import annotations

import json
from typing import Any, cast

from markupsafe import Markup, escape

NODES = 1_000  # values that a page draws of one document
CHARACTERS = 2_000  # of one string
DEPTH = 40
OPEN = 2  # levels that are not folded
FEW = 20  # more entries than that are folded at any level but the first


class Number(str):
    """A number, as it was written."""

    __slots__ = ()


class Unread:
    """JSON that is nested too deep to be read."""


def read(written: str) -> Any:
    """Decode JSON; its numbers keep their digits."""
    try:
        return json.loads(written, parse_int=Number, parse_float=Number)
    except RecursionError:
        return Unread()


def text(value: Any) -> str:
    """Encode what `read` has decoded, over several lines, with the same digits."""
    try:
        return _written(value, "")
    except RecursionError:
        return _written(Unread(), "")


def _written(value: Any, indent: str) -> str:
    deeper = f"{indent}  "
    if isinstance(value, dict) and value:
        items = [
            f"{deeper}{_quoted(str(key))}: {_written(item, deeper)}"
            for key, item in cast("dict[Any, Any]", value).items()
        ]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        items = [deeper + _written(item, deeper) for item in cast("list[Any]", value)]
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    return _leaf(value)[1]


def tree(value: Any, levels: int = OPEN) -> Markup:
    """Draw a value as HTML, so many levels of it unfolded; all of it is escaped."""
    if isinstance(value, Unread):
        return Markup('<p class="quiet">This is nested too deep to be shown.</p>')
    return Markup('<div class="json">{}</div>').format(_Drawing(levels).value(value, None, 0))


class _Drawing:
    """Draws one document, and knows how much it has drawn."""

    def __init__(self, levels: int) -> None:
        self._left = NODES
        self._levels = levels

    def value(self, value: Any, name: Markup | None, depth: int) -> Markup:
        self._left -= 1
        label = Markup("") if name is None else Markup('<span class="key">{}</span>: ').format(name)
        if isinstance(value, dict) and value:
            fields = cast("dict[str, Any]", value)
            named = [(escape(_quoted(key)), item) for key, item in fields.items()]
            return self._folded(label, named, "{}", ("key", "keys"), depth)
        if isinstance(value, list) and value:
            items = cast("list[Any]", value)
            numbered = [(escape(n), item) for n, item in enumerate(items)]
            return self._folded(label, numbered, "[]", ("item", "items"), depth)
        return label + _drawn_leaf(value)

    def _folded(
        self,
        label: Markup,
        entries: list[tuple[Markup, Any]],
        brackets: str,
        words: tuple[str, str],
        depth: int,
    ) -> Markup:
        if depth >= DEPTH:
            return label + Markup('<span class="quiet">nested deeper than is shown here</span>')
        shown: list[Markup] = []
        for name, item in entries:
            if self._left <= 0:
                break
            shown.append(Markup("<li>{}</li>").format(self.value(item, name, depth + 1)))
        if rest := len(entries) - len(shown):
            more = words[0] if rest == 1 else words[1]
            shown.append(Markup('<li class="quiet">{:,} more {}</li>').format(rest, more))
        is_open = depth == 0 or (depth < self._levels and len(entries) <= FEW)
        return Markup(
            "<details{}><summary>{}"
            '<span class="quiet">{} {:,} {} {}</span></summary><ul>{}</ul></details>'
        ).format(
            Markup(" open") if is_open else "",
            label,
            brackets[0],
            len(entries),
            words[0] if len(entries) == 1 else words[1],
            brackets[1],
            Markup("").join(shown),
        )


def _drawn_leaf(value: Any) -> Markup:
    kind, said = _leaf(value)
    more = Markup("")
    if len(said) > CHARACTERS:
        more = Markup(' <span class="quiet">… {:,} more characters</span>').format(
            len(said) - CHARACTERS
        )
        said = said[:CHARACTERS]
    return Markup('<span class="{}">{}</span>{}').format(kind, said, more)


def _leaf(value: Any) -> tuple[str, str]:
    """Say what kind of plain value this is, and how it is written."""
    if isinstance(value, Number):
        return "num", str(value)
    if isinstance(value, str):
        return "str", _quoted(value)
    if isinstance(value, Unread):
        return "lit", '"nested too deep to be shown"'
    return "lit", json.dumps(value)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
