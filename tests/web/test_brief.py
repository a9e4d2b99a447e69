"""The line that tells a job from others is bounded and harmless, whatever the payload is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as some

from howdah.observe.brief import Brief
from howdah.text.printable import one_line
from howdah.web.brief import LONGEST, line
from tests.fuzz.budget import examples

values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=400),
    lambda inner: some.lists(inner, max_size=9) | some.dictionaries(some.text(), inner, max_size=9),
    max_leaves=30,
)


@given(data=some.dictionaries(some.text(), values), label=some.none() | some.text(max_size=250))
@examples(100)
def test_any_payload_and_label_make_one_bounded_line(data: object, label: str | None) -> None:
    made = line(Brief(json.dumps(data), label), frozenset({"token"}))
    for said in (made.text, made.payload):
        assert len(said) <= LONGEST
        assert one_line(said) == " ".join(said.split())


@given(data=some.dictionaries(some.sampled_from(["token", "Token", "a"]), values))
@examples(100)
def test_hidden_fields_stay_hidden_in_every_label(data: dict[str, object]) -> None:
    made = line(Brief(json.dumps(data | {"TOKEN": "s3cret"}), "{TOKEN}"), frozenset({"token"}))
    assert made.text == "•••"
    assert "s3cret" not in made.payload


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
def test_a_label_is_names_of_fields_and_nothing_else(label: str, text: str) -> None:
    data = '{"a": 1, "big": 100000000000000000000, "nested": {"x": 2}}'
    assert line(Brief(data, label), frozenset()).text == text


@pytest.mark.parametrize(
    "data", ["[" * 900 + "]" * 900, '{"a": ' + "[" * 900 + "]" * 900 + "}", "7", '""', "{}"]
)
def test_strange_documents_are_shown_as_far_as_they_can(data: str) -> None:
    assert len(line(Brief(data, "{a}"), frozenset({"x"})).text) < 10


def test_where_nothing_was_read_nothing_is_shown() -> None:
    assert line(None, frozenset()).text == ""
