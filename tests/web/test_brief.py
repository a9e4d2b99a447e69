"""The brief text of a job is one short, printable line for any payload."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from howdah.observe.brief import Brief
from howdah.text.printable import one_line
from howdah.web.brief import LONGEST, brief_text
from tests.fuzz.budget import examples

values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=400),
    lambda inner: some.lists(inner, max_size=9) | some.dictionaries(some.text(), inner, max_size=9),
    max_leaves=30,
)


@given(data=some.dictionaries(some.text(), values), label=some.none() | some.text(max_size=250))
@examples(100)
def test_any_payload_and_label_make_one_bounded_line(data: object, label: str | None) -> None:
    brief = brief_text(Brief(json.dumps(data), label), frozenset({"token"}))
    for text in (brief.text, brief.payload):
        assert len(text) <= LONGEST
        assert one_line(text) == " ".join(text.split())


@given(data=some.dictionaries(some.sampled_from(["token", "Token", "a"]), values))
@examples(100)
def test_hidden_fields_stay_hidden_in_every_label(data: dict[str, object]) -> None:
    brief = brief_text(
        Brief(json.dumps(data | {"TOKEN": "s3cret"}), "{TOKEN}"), frozenset({"token"})
    )
    assert brief.text == "•••"
    assert "s3cret" not in brief.payload


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("{a}", "1"),
        ("{b}", "…"),
        ("no {a} {nested}", "no 1 …"),
        ("{a.__class__}", "a: 1, big: 100000000000000000000, nested: {x: 2}"),
        ("{a[0]}", "a: 1, big: 100000000000000000000, nested: {x: 2}"),
        ("{a!r}", "a: 1, big: 100000000000000000000, nested: {x: 2}"),
        ("{a:>999999999}", "a: 1, big: 100000000000000000000, nested: {x: 2}"),
        ("{", "a: 1, big: 100000000000000000000, nested: {x: 2}"),
        ("{big}", "100000000000000000000"),
    ],
)
def test_a_label_can_only_name_fields(label: str, text: str) -> None:
    data = '{"a": 1, "big": 100000000000000000000, "nested": {"x": 2}}'
    assert brief_text(Brief(data, label), frozenset()).text == text


@pytest.mark.parametrize(
    "data", ["[" * 900 + "]" * 900, '{"a": ' + "[" * 900 + "]" * 900 + "}", "7", '""', "{}"]
)
def test_unusual_documents_give_a_short_text(data: str) -> None:
    assert len(brief_text(Brief(data, "{a}"), frozenset({"x"})).text) < 10


def test_without_a_brief_the_text_is_empty() -> None:
    assert brief_text(None, frozenset()).text == ""
