"""Brief: one line that tells a job of a list from the others: its label, or its payload in short.

Comes after  observe/brief.py  which reads it
Comes before pages/jobs.py

Somebody enqueued the payload, and some worker wrote the label: the line is bounded, on one line,
without unseen characters, and hidden fields stay hidden. It is escaped where it is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from howdah.observe.brief import Brief
from howdah.text.labels import fill_label
from howdah.text.printable import one_line
from howdah.web import json_tree
from howdah.web.redact import redacted

LONGEST = 240  # characters of a line
VALUE = 60  # of one value in it
DEPTH = 3  # levels of a payload
CUT = "…"


class Line(msgspec.Struct, frozen=True):
    """What the list shows of one job's payload."""

    text: str
    payload: str  # in short; the same as the text where there is no label


def line(brief: Brief | None, hidden: frozenset[str]) -> Line:
    """Word what tells a job apart; never raises, whatever the payload and the label are."""
    if brief is None:
        return Line("", "")
    value = redacted(json_tree.read(brief.data), hidden)
    if not isinstance(value, dict):
        return Line(CUT, CUT)
    fields = cast("dict[str, Any]", value)
    payload = _cut(", ".join(_fields(fields, 0)), LONGEST)
    return Line(_label(brief.label, fields) or payload, payload)


def _label(label: str | None, fields: Mapping[str, Any]) -> str:
    filled = fill_label(label, {name: _clean(value) for name, value in fields.items()})
    return _cut(one_line(filled or ""), LONGEST)


def _clean(value: Any) -> Any:
    return one_line(value[:LONGEST]) if isinstance(value, str) else value


def _fields(fields: Mapping[str, Any], depth: int) -> list[str]:
    return [f"{_text(name)}: {_short(value, depth + 1)}" for name, value in fields.items()]


def _short(value: Any, depth: int) -> str:
    if isinstance(value, str):  # a number too: see json_tree.Number
        return _text(value)
    if isinstance(value, dict) and value:
        inner = _fields(cast("dict[str, Any]", value), depth) if depth < DEPTH else [CUT]
        return f"{{{_cut(', '.join(inner), VALUE)}}}"
    if isinstance(value, list) and value:
        items = cast("list[Any]", value)
        inner = [_short(item, depth + 1) for item in items[:VALUE]] if depth < DEPTH else [CUT]
        return f"[{_cut(', '.join(inner), VALUE)}]"
    return json.dumps(value) if isinstance(value, bool | dict | list | None) else CUT


def _text(said: str) -> str:
    return _cut(one_line(said[:LONGEST]), VALUE)


def _cut(said: str, most: int) -> str:
    return said if len(said) <= most else said[: most - 1] + CUT
