"""Brief: a short text that tells the jobs of a list apart: the label, or the payload in short.

Payload and label come from other programs. So the text has a maximum length, is one line without
invisible characters, and hides redacted fields. The template escapes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from howdah.observe.brief import Brief
from howdah.text.labels import fill_label
from howdah.text.printable import one_line
from howdah.text.wording import shorten
from howdah.web import json_tree
from howdah.web.redact import redacted

LONGEST = 240  # characters of the text
VALUE = 60  # of one value in it
DEPTH = 3  # levels of a payload
CUT = "…"


class BriefText(msgspec.Struct, frozen=True):
    """The text that the list shows for one job."""

    text: str
    payload: str  # in short; the same as the text if there is no label


def brief_text(brief: Brief | None, hidden: frozenset[str]) -> BriefText:
    """Format the text of a job; never raises, whatever the payload and the label are."""
    if brief is None:
        return BriefText("", "")
    value = redacted(json_tree.read(brief.data), hidden)
    if not isinstance(value, dict):
        return BriefText(CUT, CUT)
    fields = cast("dict[str, Any]", value)
    payload = shorten(", ".join(_fields(fields, 0)), LONGEST)
    return BriefText(_label(brief.label, fields) or payload, payload)


def _label(label: str | None, fields: Mapping[str, Any]) -> str:
    filled = fill_label(label, {name: _clean(value) for name, value in fields.items()})
    return shorten(one_line(filled or ""), LONGEST)


def _clean(value: Any) -> Any:
    return one_line(value[:LONGEST]) if isinstance(value, str) else value


def _fields(fields: Mapping[str, Any], depth: int) -> list[str]:
    return [f"{_text(name)}: {_short(value, depth + 1)}" for name, value in fields.items()]


def _short(value: Any, depth: int) -> str:
    if isinstance(value, str):  # a number too: see json_tree.Number
        return _text(value)
    if isinstance(value, dict) and value:
        inner = _fields(cast("dict[str, Any]", value), depth) if depth < DEPTH else [CUT]
        return f"{{{shorten(', '.join(inner), VALUE)}}}"
    if isinstance(value, list) and value:
        items = cast("list[Any]", value)
        inner = [_short(item, depth + 1) for item in items[:VALUE]] if depth < DEPTH else [CUT]
        return f"[{shorten(', '.join(inner), VALUE)}]"
    return json.dumps(value) if isinstance(value, bool | dict | list | None) else CUT


def _text(value: str) -> str:
    return shorten(one_line(value[:LONGEST]), VALUE)
