"""JSON tree: JSON as an HTML tree that can be folded; numbers keep all their digits.

A number never becomes a float: `Number` keeps its text. What is too long for a page is left out and
counted; `text` returns all of it.
"""

from __future__ import annotations

import json
from typing import Any, cast

from markupsafe import Markup, escape

NODES = 1_000  # values of one document
CHARACTERS = 2_000  # of one string
DEPTH = 40
OPEN = 2  # levels that are unfolded at first
FEW = 20  # entries; more are folded, except at the first level


class Number(str):
    """A number as text."""

    __slots__ = ()


class TooDeep:
    """JSON that is nested too deep."""


def read(encoded: str) -> Any:
    """Decode JSON; its numbers keep their digits."""
    try:
        return json.loads(encoded, parse_int=Number, parse_float=Number)
    except RecursionError:
        return TooDeep()


def text(value: Any) -> str:
    """Encode a result of `read` as indented JSON, with the same digits."""
    try:
        return _encoded(value, "")
    except RecursionError:
        return _encoded(TooDeep(), "")


def _encoded(value: Any, indent: str) -> str:
    deeper = f"{indent}  "
    if isinstance(value, dict) and value:
        items = [
            f"{deeper}{_quoted(str(key))}: {_encoded(item, deeper)}"
            for key, item in cast("dict[Any, Any]", value).items()
        ]
        return "{\n" + ",\n".join(items) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        items = [deeper + _encoded(item, deeper) for item in cast("list[Any]", value)]
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    return _leaf(value)[1]


def tree(value: Any, levels: int = OPEN) -> Markup:
    """Render a value as HTML with so many levels unfolded; everything is escaped."""
    if isinstance(value, TooDeep):
        return Markup('<p class="muted">This JSON is nested too deep to be shown.</p>')
    return Markup('<div class="json">{}</div>').format(_Renderer(levels).value(value, None, 0))


class _Renderer:
    """Renders one document, up to a number of values."""

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
        return label + _leaf_markup(value)

    def _folded(
        self,
        label: Markup,
        entries: list[tuple[Markup, Any]],
        brackets: str,
        words: tuple[str, str],
        depth: int,
    ) -> Markup:
        if depth >= DEPTH:
            return label + Markup('<span class="muted">nested deeper than is shown here</span>')
        shown: list[Markup] = []
        for name, item in entries:
            if self._left <= 0:
                break
            shown.append(Markup("<li>{}</li>").format(self.value(item, name, depth + 1)))
        if rest := len(entries) - len(shown):
            more = words[0] if rest == 1 else words[1]
            shown.append(Markup('<li class="muted">{:,} more {}</li>').format(rest, more))
        is_open = depth == 0 or (depth < self._levels and len(entries) <= FEW)
        return Markup(
            "<details{}><summary>{}"
            '<span class="muted">{} {:,} {} {}</span></summary><ul>{}</ul></details>'
        ).format(
            Markup(" open") if is_open else "",
            label,
            brackets[0],
            len(entries),
            words[0] if len(entries) == 1 else words[1],
            brackets[1],
            Markup("").join(shown),
        )


def _leaf_markup(value: Any) -> Markup:
    kind, text = _leaf(value)
    more = Markup("")
    if len(text) > CHARACTERS:
        more = Markup(' <span class="muted">… {:,} more characters</span>').format(
            len(text) - CHARACTERS
        )
        text = text[:CHARACTERS]
    return Markup('<span class="{}">{}</span>{}').format(kind, text, more)


def _leaf(value: Any) -> tuple[str, str]:
    """Return the CSS class and the text of a plain value."""
    if isinstance(value, Number):
        return "num", str(value)
    if isinstance(value, str):
        return "str", _quoted(value)
    if isinstance(value, TooDeep):
        return "lit", '"nested too deep to be shown"'
    return "lit", json.dumps(value)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
