"""Redaction: values under the named keys are hidden at every depth."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from howdah import payload
from howdah.web.redact import MARK, asks_for_hidden, redacted

KEYS = frozenset({"password", "token"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"password": "s3cret", "user": "ann"}, {"password": MARK, "user": "ann"}),
        ({"Password": 1, "TOKEN": None}, {"Password": MARK, "TOKEN": MARK}),
        ({"a": [{"b": {"token": ["x", "y"]}}, 2]}, {"a": [{"b": {"token": MARK}}, 2]}),
        ([{"token": {"deep": True}}], [{"token": MARK}]),
        ({"tokens": "shown", "pass": "shown"}, {"tokens": "shown", "pass": "shown"}),
        ("token", "token"),
        ("[not json", "[not json"),
        (None, None),
        (12345678901234567890123, 12345678901234567890123),
    ],
)
def test_values_under_named_keys_are_not_shown(value: Any, expected: Any) -> None:
    assert redacted(value, KEYS) == expected


def test_the_given_value_is_not_changed() -> None:
    value = {"token": "x", "list": [{"token": "y"}]}
    redacted(value, KEYS)
    assert value == {"token": "x", "list": [{"token": "y"}]}


def test_without_named_keys_everything_is_shown() -> None:
    assert redacted({"password": "s3cret"}, frozenset()) == {"password": "s3cret"}


@pytest.mark.parametrize("depth", [400, 900, 5000])
def test_deeply_nested_values_are_redacted(depth: int) -> None:
    raw = '{"a":' * depth + '{"token":"s3cret"}' + "}" * depth
    assert "s3cret" not in str(_text(redacted(payload.decode(raw), KEYS)))


def test_values_beside_an_unreadable_number_are_redacted() -> None:
    raw = '{"token": "s3cret", "n": 1%s}' % ("0" * 5000)
    assert redacted(raw, KEYS) == MARK


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@pytest.mark.parametrize(
    ("key", "value", "hidden"),
    [
        ("to", "kim", False),
        ("TOKEN", "kim", True),
        ("to", '{"a": [{"Token": 1}]}', True),
        ("to", '{"a": "token"}', False),
        ("to", '{"Token": 1, "n": ' + "1" * 5_000 + "}", True),
        ("to", "[" * 100_000 + "]" * 100_000, True),  # too deep to be checked
    ],
    ids=["plain", "key", "within", "value", "huge number", "deep"],
)
def test_a_filter_that_contains_a_redacted_key_is_found(key: str, value: str, hidden: bool) -> None:
    assert asks_for_hidden(key, value, frozenset({"token"})) is hidden
    assert not asks_for_hidden(key, value, frozenset())
